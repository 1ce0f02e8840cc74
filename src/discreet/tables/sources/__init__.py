"""Files, frames and databases, opened without looking at rows."""
