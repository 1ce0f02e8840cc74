"""Counts by group, with groups that are public or found privately."""
