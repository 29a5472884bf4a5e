"""How many examples Hypothesis draws for a property. `MENDFLOW_TEST_PROFILE` chooses among three: `short` is for the
check of every change, `usual` for the full one, `long` for a night."""

import os

PROFILES = {"short": 15, "usual": 100, "long": 2000}
PROFILE = os.environ.get("MENDFLOW_TEST_PROFILE", "usual")
LEAST = 5


def examples(usual: int) -> int:
    """For a property whose usual number is not that of the others: the same share of it as the others have."""
    return max(LEAST, usual * PROFILES[PROFILE] // PROFILES["usual"])
