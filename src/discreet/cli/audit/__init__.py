"""``discreet audit ...``: measure what mechanisms leak, the library's and one's own."""
