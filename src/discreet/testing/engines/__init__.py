"""One suite for all engines: statements, rows and an oracle that knows no SQL."""
