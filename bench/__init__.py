"""How fast it is, beside others, on one machine and in one run: `python -m bench`."""
