"""Batch systems: how pilots get onto machines that are somebody else's to give."""
