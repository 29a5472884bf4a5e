"""A case as one HTML page, and charts."""
