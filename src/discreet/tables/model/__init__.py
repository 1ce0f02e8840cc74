"""Frozen data that every other folder of the room speaks: no SQL text is made, no data touched."""
