"""Experiments with the simulator, outside the wheel: `python -m experiments.paper`, `python -m experiments.beyond`."""
