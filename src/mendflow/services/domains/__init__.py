"""Domains as peers: connections between them, what they say of themselves, where work goes, and the work itself."""
