"""Questions about tables rather than data: PostgreSQL's catalogue, filled with public metadata."""
