"""What an item's attempts come to. One that a pilot returned unstarted was never made, and counts for nothing."""

from mendflow.core.model.ids import Instant
from mendflow.core.model.views import AttemptView, ItemView


def started_attempts(item: ItemView) -> list[AttemptView]:
    """The attempts that were started."""
    return [attempt for attempt in item.attempts if attempt.end != "returned"]


def is_mended(item: ItemView) -> bool:
    """Whether it is done although an attempt had failed or was lost, or the item was restarted."""
    return item.state == "completed" and (len(started_attempts(item)) > 1 or bool(item.earlier_runs))


def ran_ms(item: ItemView, now: Instant = 0) -> int | None:
    """How long a job ran, all its attempts together: not how long it waited for a pilot, for a free slot there or for
    its files. Of any other item, from its start to its end. None if it has not ended, or never ran; with `now`, what
    still runs counts up to then."""
    if not item.ended_at and not now:
        return None
    if item.kind != "job" and not item.attempts:
        return max((item.ended_at or now) - item.created_at, 0)
    known = [spent for attempt in started_attempts(item) if (spent := _attempt_ran_ms(attempt, now)) is not None]
    return sum(known) if known else None


def _attempt_ran_ms(attempt: AttemptView, now: Instant) -> int | None:
    """None if nothing tells that it ran: it failed before, or its pilot was lost with what it had measured."""
    if attempt.ran_ms:
        return attempt.ran_ms
    if not attempt.ended_at:
        return max(now - (attempt.started_at or attempt.granted_at), 0)
    return max(attempt.ended_at - attempt.started_at, 0) if attempt.started_at else None


def times_of(attempt: AttemptView, now: Instant) -> tuple[Instant, Instant]:
    """Start and end, in this order whatever the pilot's clock says; `now` for what has not ended."""
    ended = max(attempt.ended_at or now, attempt.granted_at)
    started = min(max(attempt.started_at or attempt.granted_at, attempt.granted_at), ended)
    return started, ended
