"""``discreet epsilon``, ``calibrate`` and ``tradeoff``: accounting by command."""
