"""Who is at the door: passwords that are tokens, and SCRAM, which never sends the secret."""
