"""Strings that no list holds: hashed reports, how often given strings occur, and unknown ones."""
