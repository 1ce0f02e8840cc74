"""Sealed envelopes: what a device sends, which the shuffler carries and only the analyser opens."""
