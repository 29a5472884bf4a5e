"""The audit log: who did what, on record before the caller hears of it."""
