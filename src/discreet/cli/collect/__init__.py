"""``discreet collect``: ask devices that trust nobody, from a terminal."""
