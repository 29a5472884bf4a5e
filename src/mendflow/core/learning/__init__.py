"""What ended jobs and past failures teach: counts, estimates, sizes, and the rules that they suggest. Pure statistics
that a person can read."""
