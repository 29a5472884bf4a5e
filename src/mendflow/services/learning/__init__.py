"""Learning: what jobs need, what happened to them and what that cost, and the rules that it suggests."""
