"""XML that is written again as it was read."""
