"""Warm Python processes that run functions."""
