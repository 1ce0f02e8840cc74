"""Questions of several parts: what is released, and what is computed of it."""
