"""Sites: how many pilots each should have, and the state of those that were submitted."""
