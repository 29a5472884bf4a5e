"""Data sets: files that come, batches that are made of them, and the cases that follow."""
