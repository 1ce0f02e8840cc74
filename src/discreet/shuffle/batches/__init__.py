"""What goes from the shuffler to the analyser: signed batches in an order that tells nothing."""
