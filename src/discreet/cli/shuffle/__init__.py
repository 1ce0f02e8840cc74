"""Set up, run and look at a shuffler and an analyser."""
