"""PostgreSQL, where its tables lie: one statement of a read-only transaction for each answer."""
