"""One schema, many hosts."""
