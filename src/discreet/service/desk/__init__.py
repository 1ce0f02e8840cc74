"""What the gateway does for a login: quote, answer in public time, and look after datasets."""
