"""Scalar expressions: one total, typed term for each node."""
