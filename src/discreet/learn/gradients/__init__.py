"""The sum of clipped per-unit gradients: the engine around the rules."""
