"""The answer as an object: columns, JSON, rendering, post-processing."""
