"""A store in one file: SQLite, with one writer that groups commits."""
