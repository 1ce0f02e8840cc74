"""Per-example norms, plain and in Triton."""
