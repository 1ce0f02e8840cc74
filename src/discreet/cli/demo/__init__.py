"""``discreet demo``, and what it shows: tables, training and attacks."""
