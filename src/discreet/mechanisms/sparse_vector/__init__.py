"""Watch many questions and pay for the few that exceed a threshold."""
