"""Directed rounding, searches and special functions."""
