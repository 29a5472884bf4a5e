"""docs/understand/experiments.md: the paper's experiments with ours in their place, and what changes with what it does
not say."""
