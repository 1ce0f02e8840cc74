"""The calls of torch functions that a forward pass is made of: traced once, compared each time."""
