"""Schedules: documents in the store, the starter of due times that every server runs, and what people ask of them."""
