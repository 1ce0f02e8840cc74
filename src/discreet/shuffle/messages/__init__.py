"""Several messages from each device: dummies among them hide each other's true ones."""
