"""From a method call to a durable, signed entry."""
