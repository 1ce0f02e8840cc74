"""Values as they cross the wire: types by number, in text and in binary, in both directions."""
