"""The text being read: its context, positions in it, and reasons to refuse."""
