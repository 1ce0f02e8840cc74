"""What an entry is and what it does to the state: pure functions, no clock, key or database."""
