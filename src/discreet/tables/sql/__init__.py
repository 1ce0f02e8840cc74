"""From the text of a question to a query: FROM, WHERE, GROUP BY and the SELECT list."""
