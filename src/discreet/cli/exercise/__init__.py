"""``discreet exercise``: questions for learners, whose answers the library computes."""
