"""``discreet demo`` and ``discreet demo learn``."""
