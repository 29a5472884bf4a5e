"""The nouns: flows, jobs, faults, values, and what pilots and servers say to each other."""
