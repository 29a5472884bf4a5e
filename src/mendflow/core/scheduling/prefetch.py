"""How many jobs a pilot asks for at a time.

An exchange costs the same for one job as for sixty-four. When jobs are much shorter than an exchange, a pilot that
asks for one at a time mostly waits; so it asks for as many as it will finish while a few exchanges go by. When jobs are
long it asks for exactly what it can start at once: a job fetched ahead would wait here while another pilot idles.
What jobs will take is only guessed from what others took. So a slot whose job has run for long gets nothing fetched
ahead, and when jobs wait that no slot will come to soon, they are given back."""

PER_SLOT_MAX = 64
"""How many short jobs a pilot asks for a slot, at most: enough that an exchange costs little a job."""

AHEAD_MS = 50
"""How much work a slot may have waiting in the pilot, unless exchanges take longer than that."""

EXCHANGES_AHEAD = 4
"""How many exchanges' worth of work a slot keeps: one on its way, and some for the unevenness of both."""


OUTLIER_FACTOR = 5
"""After how many times the work that a slot may have waiting its running job proves the guess wrong."""


def jobs_wanted(
    *, slots: int, free_slots: int, held: int, mean_ms: float | None, exchange_ms: float, slow_slots: int = 0
) -> int:
    """How many more jobs to ask for now.

    `held` counts jobs that wait in the pilot for a slot; `mean_ms` is how long recent jobs took, or None when there
    were none, and then the pilot learns from what it can start at once. `slow_slots` are those whose job has already
    run for longer than `window_ms`, whatever the mean says."""
    assert 0 <= free_slots <= slots and held >= 0, f"{free_slots} of {slots} slots free, {held} held"
    brisk = max(0, slots - slow_slots)
    return max(0, free_slots + brisk * jobs_ahead(mean_ms=mean_ms, exchange_ms=exchange_ms) - held)


def jobs_to_return(*, slots: int, slow_slots: int, waiting: int, mean_ms: float | None, exchange_ms: float) -> int:
    """How many of the jobs that wait in the pilot to give back, because the slots that are not slow will not come to
    them soon."""
    if not slow_slots:
        return 0
    brisk = max(0, slots - slow_slots)
    return max(0, waiting - brisk * (1 + jobs_ahead(mean_ms=mean_ms, exchange_ms=exchange_ms)))


def window_ms(exchange_ms: float) -> float:
    """How much work a slot may have waiting in the pilot."""
    return max(AHEAD_MS, EXCHANGES_AHEAD * exchange_ms)


def jobs_ahead(*, mean_ms: float | None, exchange_ms: float) -> int:
    """How many jobs a slot fetches beyond the one it runs."""
    if mean_ms is None:
        return 0
    window = window_ms(exchange_ms)
    if mean_ms >= window:
        return 0
    return min(PER_SLOT_MAX, int(window / max(mean_ms, 0.1)))


def rounds(jobs_wanted: int, slots: int) -> int:
    """How many times over a pilot means to use its room with what it asks for; what the queue is told in an offer."""
    return max(1, -(-jobs_wanted // max(1, slots)))


def updated_mean_ms(mean_ms: float | None, took_ms: float, *, weight: float = 0.1) -> float:
    """The running mean of how long jobs take. One long job among short ones counts at once, in full: asking for too
    few costs some exchanges, asking for too many holds jobs back from other pilots."""
    if mean_ms is None or took_ms > 10 * mean_ms:
        return took_ms
    return mean_ms + weight * (took_ms - mean_ms)
