"""Finite laws: the whole numbers that a device's coins compare with, and the loss they have."""
