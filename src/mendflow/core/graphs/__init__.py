"""Flows drawn as graphs."""
