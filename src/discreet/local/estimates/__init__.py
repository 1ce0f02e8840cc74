"""What reports say about everybody: estimates without bias, their errors and their intervals."""
