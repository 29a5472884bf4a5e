"""What an item's attempts come to. One that a pilot gave back unstarted was never made, and counts for nothing."""

from mendflow.core.model.ids import Instant
from mendflow.core.model.views import AttemptView, ItemView


def ran(item: ItemView) -> list[AttemptView]:
    """The attempts that were made, or are being made."""
    return [attempt for attempt in item.attempts if attempt.end != "released"]


def mended(item: ItemView) -> bool:
    """Done, though an attempt had failed or was lost."""
    return item.state == "completed" and len(ran(item)) > 1


def times_of(attempt: AttemptView, now: Instant) -> tuple[Instant, Instant]:
    """Started and ended, in this order whatever the pilot's clock says; `now` for what is not over."""
    ended = max(attempt.ended_at or now, attempt.granted_at)
    started = min(max(attempt.started_at or attempt.granted_at, attempt.granted_at), ended)
    return started, ended
