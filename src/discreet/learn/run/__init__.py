"""One run: data, units, team, payment, one step."""
