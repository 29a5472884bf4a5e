"""Every rule that the past suggests, of all kinds."""

from collections.abc import Iterator

from mendflow.core.learning.place_suggestions import suggest_places, suggest_source
from mendflow.core.learning.repair_suggestions import History, Suggestion, suggest_by_hand, suggest_repair
from mendflow.core.learning.rule_suggestions import suggest_stop, suggest_wait
from mendflow.core.model.faults import Category
from mendflow.core.model.repair import ExceptionType


def suggestions(history: History) -> Iterator[Suggestion]:
    """Every rule that is worth a proposal now, at most one for each cause and kind."""
    for group in history.groups:
        if group.id not in history.changed:
            continue
        if group.type is not ExceptionType.ABORT or group.category == Category.CANCELLED:
            continue
        found = suggest_by_hand(history, group) or suggest_repair(history, group)
        if found is not None:
            yield found
        yield from filter(None, (suggest_stop(history, group), suggest_wait(history, group)))
        if (source := suggest_source(history, group)) is not None:
            yield source
    yield from suggest_places(history)
