"""Whoever speaks with flows in messages: what comes in for them, and whom they call."""
