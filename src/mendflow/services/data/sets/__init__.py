"""Data sets: files that arrive, the batches that are made of them, and the cases that are started for the batches."""
