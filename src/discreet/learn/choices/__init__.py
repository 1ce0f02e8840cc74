"""Sampling, clipping and stages: frozen settings with a proof each."""
