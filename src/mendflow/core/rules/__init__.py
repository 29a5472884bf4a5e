"""Ripple-down rules: what they conclude, how they grow, and what they would have done."""
