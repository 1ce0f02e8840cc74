"""``discreet train ...``."""
