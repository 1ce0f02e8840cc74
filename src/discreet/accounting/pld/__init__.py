"""Certified composition on a lattice: privacy loss distributions."""
