"""What an item's attempts come to. One that a pilot returned unstarted was never made, and counts for nothing."""

from mendflow.core.model.ids import Instant
from mendflow.core.model.views import AttemptView, ItemView


def started_attempts(item: ItemView) -> list[AttemptView]:
    """The attempts that were started."""
    return [attempt for attempt in item.attempts if attempt.end != "returned"]


def is_mended(item: ItemView) -> bool:
    """Whether it is done although an attempt had failed or was lost, or the item was restarted."""
    return item.state == "completed" and (len(started_attempts(item)) > 1 or bool(item.earlier_runs))


def elapsed_ms(item: ItemView) -> int | None:
    """From its first attempt to its end; for items without attempts, from its start. None if it has not ended, or is a
    job that nobody started."""
    began = item.attempts[0].granted_at if item.attempts else 0 if item.kind == "job" else item.created_at
    return max(item.ended_at - began, 0) if began and item.ended_at else None


def times_of(attempt: AttemptView, now: Instant) -> tuple[Instant, Instant]:
    """Start and end, in this order whatever the pilot's clock says; `now` for what has not ended."""
    ended = max(attempt.ended_at or now, attempt.granted_at)
    started = min(max(attempt.started_at or attempt.granted_at, attempt.granted_at), ended)
    return started, ended
