"""Stores: the contract that all of them satisfy, and one package for each kind."""
