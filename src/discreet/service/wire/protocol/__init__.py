"""Messages of PostgreSQL's protocol, version 3: bytes to values and back, no more."""
