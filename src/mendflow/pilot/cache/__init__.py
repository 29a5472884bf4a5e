"""Files that a pilot keeps because the next job may need them, by their digests."""
