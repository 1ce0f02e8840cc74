"""Adaptive composition: costs, limits, exact sums."""
