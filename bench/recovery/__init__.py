"""Failure scenarios: what becomes of the same trouble with no recovery, plain retries, and the house rules."""
