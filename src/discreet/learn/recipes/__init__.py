"""Small ready models for ``discreet train``."""
