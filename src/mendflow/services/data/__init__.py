"""Logical files and where they are stored; data sets, and the watched folders that fill them."""
