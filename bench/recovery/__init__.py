"""Failure scenarios: what becomes of the same trouble with no recovery, plain retries, and the default rules."""
