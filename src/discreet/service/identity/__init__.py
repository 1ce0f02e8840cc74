"""Who asks: API keys, tokens of issuers, and the roles that they give."""
