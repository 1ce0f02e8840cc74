"""Numbers, vectors, ranges, tables of two attributes and key-value pairs: one randomiser a file."""
