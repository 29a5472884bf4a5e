"""The operations that people and programs may ask for."""
