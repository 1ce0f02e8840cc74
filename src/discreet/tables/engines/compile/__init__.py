"""A statement as one SELECT."""
