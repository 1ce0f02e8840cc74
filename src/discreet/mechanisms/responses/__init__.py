"""Each person randomises their own answer."""
