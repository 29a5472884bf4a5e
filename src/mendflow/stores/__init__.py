"""Stores: the contract that all of them keep, and one package for each kind."""
