"""Names and places of logical files, and how files of a data set become batches."""
