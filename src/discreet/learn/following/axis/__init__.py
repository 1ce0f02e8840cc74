"""The unit axis: which operations act on each unit alone, decided from the operations."""
