"""How many jobs a pilot asks for, and how many a slot gets at a time: it follows how short recent jobs were.

Long jobs are never hoarded: another pilot could run them now. Short ones are, because otherwise slots would idle
for a whole exchange with the server after each."""

import math

WANT_MAX = 128
"""No pilot asks for more at once, however short its jobs."""

SHORT_MS = 50.0
"""Jobs longer than this are asked for one per free slot."""


def want(*, free_slots: int, slots: int, held: int, mean_runtime_ms: float | None, exchange_ms: float) -> int:
    """Jobs to ask for now: one per free slot, and for short jobs what all slots can do during two exchanges."""
    if mean_runtime_ms is None or mean_runtime_ms > SHORT_MS:
        return max(0, free_slots - held)
    ahead = math.ceil(slots * 2 * exchange_ms / max(mean_runtime_ms, 0.05))
    return max(0, min(slots + ahead, WANT_MAX) - held)


def slot_depth(mean_runtime_ms: float | None) -> int:
    """How many attempts a slot may have at a time: about five milliseconds of work."""
    if mean_runtime_ms is None or mean_runtime_ms > SHORT_MS:
        return 1
    return max(1, min(32, math.ceil(5.0 / max(mean_runtime_ms, 0.05))))


def smoothed(mean_ms: float | None, sample_ms: float) -> float:
    """The running mean of runtimes: quick to rise, so that one long job ends the hoarding, slower to fall."""
    if mean_ms is None:
        return sample_ms
    weight = 0.5 if sample_ms > mean_ms else 0.1
    return mean_ms + weight * (sample_ms - mean_ms)
