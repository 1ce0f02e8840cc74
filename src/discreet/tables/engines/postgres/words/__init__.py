"""PostgreSQL's words for what questions are made of, each of them total."""
