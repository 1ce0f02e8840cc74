"""An account: the budget of one population, and everything that draws on it."""
