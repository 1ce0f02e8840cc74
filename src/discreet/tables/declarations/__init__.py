"""What the custodian says about tables, and its TOML form."""
