"""Searches and special functions: binomials, normal tails, the lattice Gaussian, zCDP."""
