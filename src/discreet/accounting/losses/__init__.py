"""One frozen class per mechanism; the contract with ledgers."""
