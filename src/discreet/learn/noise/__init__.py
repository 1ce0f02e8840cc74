"""Grid noise on a summed gradient, on the processor and on a GPU."""
