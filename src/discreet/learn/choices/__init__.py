"""Sampling and clipping: frozen settings with a proof each."""
