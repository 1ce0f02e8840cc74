"""Run a gateway, and look after the keys of those who use it."""
