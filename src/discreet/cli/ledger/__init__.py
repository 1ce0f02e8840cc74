"""``discreet ledger ...`` and ``discreet verify``."""
