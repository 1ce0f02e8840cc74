"""What one client says once it is known: settings, statements and their answers."""
