"""Archives: cases exported from one store to a file, and imported into the same or another store."""
