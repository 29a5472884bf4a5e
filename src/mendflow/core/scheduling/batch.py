"""How many jobs a pilot asks for at a time.

An exchange costs the same for one job as for sixty-four. When jobs are much shorter than an exchange, a pilot that
asks for one at a time mostly waits; so it asks for as many as it will finish while a few exchanges go by. When jobs are
long it asks for exactly what it can start at once: a job fetched ahead would wait here while another pilot idles."""

PER_SLOT_MAX = 64
"""How many short jobs a pilot asks for a slot, at most: enough that an exchange costs little a job."""

AHEAD_MS = 50
"""How much work a slot may have waiting in the pilot, unless exchanges take longer than that."""

EXCHANGES_AHEAD = 4
"""How many exchanges' worth of work a slot keeps: one on its way, and some for the unevenness of both."""


def want(*, slots: int, free_slots: int, held: int, mean_ms: float | None, exchange_ms: float) -> int:
    """How many more jobs to ask for now.

    `held` counts jobs that wait in the pilot for a slot; `mean_ms` is how long recent jobs took, or None when there
    were none, and then the pilot learns from what it can start at once."""
    assert 0 <= free_slots <= slots and held >= 0, f"{free_slots} of {slots} slots free, {held} held"
    return max(0, free_slots + slots * ahead(mean_ms=mean_ms, exchange_ms=exchange_ms) - held)


def ahead(*, mean_ms: float | None, exchange_ms: float) -> int:
    """How many jobs a slot fetches beyond the one it runs."""
    if mean_ms is None:
        return 0
    window_ms = max(AHEAD_MS, EXCHANGES_AHEAD * exchange_ms)
    if mean_ms >= window_ms:
        return 0
    return min(PER_SLOT_MAX, int(window_ms / max(mean_ms, 0.1)))


def rounds(want: int, slots: int) -> int:
    """How many times over a pilot means to use its room with what it asks for; what the queue is told in an offer."""
    return max(1, -(-want // max(1, slots)))


def mean_after(mean_ms: float | None, took_ms: float, *, weight: float = 0.1) -> float:
    """The running mean of how long jobs take. One long job among short ones counts at once, in full: asking for too
    few costs some exchanges, asking for too many holds jobs back from other pilots."""
    if mean_ms is None or took_ms > 10 * mean_ms:
        return took_ms
    return mean_ms + weight * (took_ms - mean_ms)
