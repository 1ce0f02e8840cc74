"""Frequencies over a known domain: one frozen randomiser a file, all of one shape."""
