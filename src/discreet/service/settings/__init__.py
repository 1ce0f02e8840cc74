"""How a gateway is set up: a file, the environment, flags; checked before anything is opened."""
