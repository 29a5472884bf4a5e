"""How many jobs a pilot requests at a time.

An exchange costs the same for one job as for a hundred. When jobs are much shorter than an exchange, a pilot that
requests one at a time mostly waits; so it requests as many as it will finish during a few exchanges. When jobs are long
it requests exactly what it can start at once: a prefetched job would wait here while another pilot idles. Run times are
only estimated from earlier jobs. So a slot whose job has run for long gets nothing prefetched, and jobs that no slot
will start soon are returned."""

PER_SLOT_MAX = 160
"""The maximum number of short jobs per slot: enough that an exchange costs little per job, and that slots still have
some while the server reads what they have reported."""

PER_PILOT_MAX = 1_024
"""The maximum for all slots together: the server reads as many reports at a time, and others wait for that."""

AHEAD_MS = 50
"""How much work may wait per slot, unless exchanges take longer than that."""

EXCHANGES_AHEAD = 4
"""For how many exchanges a slot has work: one in progress, and some for variation."""


MEAN_WEIGHT = 0.1
"""How much the last job counts in the running mean of durations."""

OUTLIER_FACTOR = 5
"""After this multiple of the work that may wait per slot, a running job proves the estimate wrong."""


def jobs_wanted(
    *, slots: int, free_slots: int, held: int, mean_ms: float | None, exchange_ms: float, slow_slots: int = 0
) -> int:
    """How many more jobs to request now.

    `held` counts jobs that wait in the pilot for a slot; `mean_ms` is the mean duration of recent jobs, or None if
    there were none, and then the pilot requests what it can start at once. `slow_slots` are those whose job has already
    run for longer than `window_ms`, whatever the mean is."""
    assert 0 <= free_slots <= slots and held >= 0, f"{free_slots} of {slots} slots free, {held} held"
    brisk = max(0, slots - slow_slots)
    return max(0, free_slots + brisk * jobs_ahead(slots=slots, mean_ms=mean_ms, exchange_ms=exchange_ms) - held)


def jobs_to_return(*, slots: int, slow_slots: int, waiting: int, mean_ms: float | None, exchange_ms: float) -> int:
    """How many of the waiting jobs to return, because the slots that are not slow will not start them soon."""
    if not slow_slots:
        return 0
    brisk = max(0, slots - slow_slots)
    return max(0, waiting - brisk * (1 + jobs_ahead(slots=slots, mean_ms=mean_ms, exchange_ms=exchange_ms)))


def window_ms(exchange_ms: float) -> float:
    """How much work may wait per slot."""
    return max(AHEAD_MS, EXCHANGES_AHEAD * exchange_ms)


def jobs_ahead(*, slots: int, mean_ms: float | None, exchange_ms: float) -> int:
    """How many jobs to prefetch per slot beyond the running one."""
    if mean_ms is None:
        return 0
    window = window_ms(exchange_ms)
    if mean_ms >= window:
        return 0
    return min(PER_SLOT_MAX, max(1, PER_PILOT_MAX // max(1, slots)), int(window / max(mean_ms, 0.1)))


def rounds(jobs_wanted: int, slots: int) -> int:
    """How many times over the requested jobs will use the pilot's resources; part of the offer."""
    return max(1, -(-jobs_wanted // max(1, slots)))


def updated_mean_ms(mean_ms: float | None, took_ms: float) -> float:
    """The running mean of job durations. One long job among short ones counts fully at once: too small a request costs
    some exchanges, too large a one keeps jobs from other pilots."""
    if mean_ms is None or took_ms > 10 * mean_ms:
        return took_ms
    return mean_ms + MEAN_WEIGHT * (took_ms - mean_ms)
