"""Batch systems: how pilots get onto the machines of a cluster."""
