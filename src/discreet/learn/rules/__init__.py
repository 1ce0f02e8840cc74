"""One rule per torch operation."""
