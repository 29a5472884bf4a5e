"""The catalogue: which logical files there are, what they are, and where they are stored."""
