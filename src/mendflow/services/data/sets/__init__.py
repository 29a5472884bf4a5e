"""Data sets: files that arrive, batches that are made of them, and the cases that follow."""
