"""How many attempts a slot gets at a time, by how short recent jobs were.

core/scheduling/prefetch.py decides how many jobs the pilot requests. While jobs are short, a slot holds a few of them,
so that neither slot nor agent waits for the other; the rest stays with the agent for whichever slot is free first."""

import math

SHORT_MS = 25.0
"""A slot gets one attempt at a time when jobs take longer than this."""

AT_HAND_MS = 8.0
AT_HAND_MAX = 64


def slot_depth(mean_ms: float | None) -> int:
    """How many attempts a slot may hold."""
    if mean_ms is None or mean_ms > SHORT_MS:
        return 1
    return max(1, min(AT_HAND_MAX, math.ceil(AT_HAND_MS / max(mean_ms, 0.05))))
