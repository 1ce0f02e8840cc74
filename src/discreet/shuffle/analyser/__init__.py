"""The analyser: pays for a batch, opens it, and estimates; it cannot tell whose report is whose."""
