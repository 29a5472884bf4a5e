"""A job's files: inputs fetched, outputs stored and published."""
