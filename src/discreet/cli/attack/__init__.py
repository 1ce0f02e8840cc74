"""``discreet attack ...``: how far an attack comes without protection, and with it."""
