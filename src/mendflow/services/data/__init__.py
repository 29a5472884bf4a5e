"""Logical files and where they are stored; data sets, and watched folders that fill them."""
