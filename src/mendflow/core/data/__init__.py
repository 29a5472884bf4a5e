"""Logical names, their places, and how files of a data set become batches."""
