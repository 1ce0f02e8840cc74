"""One file, many processes."""
