"""What waits in a retry level, told first: which job or file a case waits for, since when, until when, and how to stop
that."""

from collections.abc import Sequence
from typing import Final

import msgspec

from mendflow.core.model.faults import Category
from mendflow.core.model.repair_views import DecisionView, Explanation
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.scheduling.amounts import clock
from mendflow.services.recovery.levels import LevelEntry

OTHER_STATES: Final = frozenset({"completed", "cancelled", "skipped", "suspended", "held"})
"""States that say more than that something waits."""


def waiting_for(case: str, item: str, entries: Sequence[LevelEntry]) -> list[LevelEntry]:
    """The entries that concern a case, or one item of it; the next one first."""
    return [entry for entry in entries if entry.case == case and item in ("", entry.item)]


def with_wait(
    told: Explanation,
    waiting: Sequence[LevelEntry],
    repairs: Sequence[DecisionView],
    waits_ms: Sequence[int],
    *,
    is_idle: bool,
) -> Explanation:
    """The reason, with what waits in front of it. `repairs` are those of the subject, the newest first. `is_idle`:
    nothing else of the case runs."""
    if not waiting or told.state in OTHER_STATES:
        return told
    entry = waiting[0]
    own = [each for each in repairs if each.item == entry.item]
    who = f"case {entry.case}" if told.subject == entry.case and is_idle else str(entry.item)
    sentence = _sentence(who, entry, own, waits_ms, more=len(waiting) - 1)
    facts = [told.sentence, *told.facts]
    if told.subject == entry.case:  # that nothing of it runs is said by what it waits for
        sentence, facts = (sentence if is_idle else f"{told.sentence} {sentence}"), told.facts
    state = "waiting" if is_idle or told.subject != entry.case else told.state
    return msgspec.structs.replace(told, state=state, sentence=sentence, facts=facts, until=entry.due_at)


def _sentence(who: str, entry: LevelEntry, own: Sequence[DecisionView], waits_ms: Sequence[int], *, more: int) -> str:
    fault = own[0].fault if own else None
    is_file = fault is not None and fault.category is Category.DATA
    of_item = f" of {entry.item}" if who != entry.item else ""
    what = f"waits for a file{of_item}" if is_file else f"waits for another try{of_item}"
    since = f" since {clock(min(each.at for each in own))}" if own else ""
    why = f": {fault.message}" if fault is not None else ""
    by_default = bool(own) and own[0].rules == DEFAULT_RULES
    last = f", the last one at {clock(_last_at(entry, waits_ms))}" if by_default and entry.level < len(waits_ms) else ""
    so_do = f" So do {more} more of its items." if more else ""
    return (
        f"{who} {what}{since}{why}.{so_do} The next try is at {clock(entry.due_at)}{last}:"
        f" `mendflow rules levels drain {entry.level}` tries now, `mendflow cancel {entry.case}` stops waiting."
    )


def _last_at(entry: LevelEntry, waits_ms: Sequence[int]) -> int:
    """When the last level is over, if it fails each time."""
    return entry.due_at + sum(waits_ms[entry.level :])
