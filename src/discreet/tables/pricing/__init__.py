"""From a query and an offer to a price; no data is touched."""
