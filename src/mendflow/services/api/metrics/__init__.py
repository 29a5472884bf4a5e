"""Metrics of one server, and of all servers on the store, as of now."""
