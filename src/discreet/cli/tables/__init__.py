"""``discreet protect``, ``quote`` and ``query``."""
