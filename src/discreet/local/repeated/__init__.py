"""Asked again and again: responses drawn once for ever, and budgets that a device keeps itself."""
