"""Dominating pairs: what a loss hands to the accountant."""
