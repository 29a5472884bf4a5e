"""Flows written in Python."""
