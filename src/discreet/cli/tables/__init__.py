"""``discreet protect``, ``unprotect``, ``quote`` and ``query``."""
