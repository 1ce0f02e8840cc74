"""Rows of a dataset: each is read, transformed and collated alone, then put beside the others."""
