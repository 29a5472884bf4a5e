"""How many attempts a slot gets at a time: it follows how short recent jobs were.

How many the pilot asks the server for is decided in core/scheduling/prefetch.py. Of those a slot has a few at hand
while jobs are short, so that neither it nor the agent waits for the other; the rest stays with the agent, for whichever
slot is free first."""

import math

SHORT_MS = 25.0
"""Of jobs longer than this a slot has one at a time."""

AT_HAND_MS = 8.0
AT_HAND_MAX = 64


def slot_depth(mean_ms: float | None) -> int:
    """How many attempts a slot may have at a time."""
    if mean_ms is None or mean_ms > SHORT_MS:
        return 1
    return max(1, min(AT_HAND_MAX, math.ceil(AT_HAND_MS / max(mean_ms, 0.05))))
