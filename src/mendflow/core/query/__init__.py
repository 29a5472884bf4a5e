"""Searches: the names that can be searched by, what they mean in a document, and CEL conditions compiled for a
store."""
