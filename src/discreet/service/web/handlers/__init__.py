"""What each route does, by the kind of its visitors."""
