"""Cases in a file: written from one store, read into the same or another."""
