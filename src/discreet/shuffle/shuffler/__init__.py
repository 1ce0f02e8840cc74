"""The shuffler: keeps envelopes of known senders, forgets who sent which, gives out batches."""
