"""Retention: cases that are over go, with all that belongs to them and to nobody else."""
