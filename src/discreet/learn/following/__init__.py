"""Which operation met which parameter, and what it left behind."""
