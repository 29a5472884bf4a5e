"""The catalogue: logical files, their digests and sizes, and where they are stored."""
