"""What a process remembers: a SQLite file that survives kills, and forgets what it must."""
