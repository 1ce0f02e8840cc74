"""What the ledger asks of a database. No budget is known here."""
