"""Free steps after an estimate, each by itself, that use what is known anyway."""
