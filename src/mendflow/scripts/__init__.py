"""Flows that are run from scripts and notebooks: `flow.run(...)`, `flow.submit(...)`."""
