"""``discreet explain``: what a guarantee means for one person."""
