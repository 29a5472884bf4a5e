"""Sites: how many pilots each should have, and what became of those that were submitted."""
