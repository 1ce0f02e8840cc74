"""One suite for all stores of ledgers: entries, facts, transactions, and many at once."""
