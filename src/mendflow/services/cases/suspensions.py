"""Who suspends a case, or an item of it, and what ends the suspension.

A holder is known by a name alone: an exlet by its case, a safeguard by its decision, a person by none. A holder that is
still under way will end the suspension by itself; one that is over never will, and a person has to."""

from collections.abc import Iterable, Mapping

from mendflow.core.engine.state import Item
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.views import CaseHold
from mendflow.services.cases.live_case import LiveCase

PERSON = ""
REJECTION, SAFEGUARD = "reject:", "waiting:"


def holds_of(live: LiveCase, cases: Mapping[CaseId, LiveCase]) -> list[CaseHold]:
    """Everything in a live case that is suspended, with its holders."""
    case, ending = live.case, live.document.ending
    found: list[tuple[ItemId | None, str]] = []
    if case.over:
        return [hold_of(None, each, cases) for each in ending.holders] if ending is not None else []
    if case.status == "suspended":
        found += [(None, each) for each in case.holders or (PERSON,)]
    for number, holders in case.item_holders.items():
        instance = case.instances.get(number)
        if isinstance(instance, Item):
            found += [(instance.item, each) for each in holders]
    return [hold_of(item, each, cases) for item, each in found]


def hold_of(item: ItemId | None, holder: str, cases: Mapping[CaseId, LiveCase]) -> CaseHold:
    """A holder, as people see it."""
    if holder == PERSON:
        return CaseHold(item=item, by="a person")
    if holder.startswith(SAFEGUARD):
        return CaseHold(item=item, by=f"decision {holder.removeprefix(SAFEGUARD)}, which waits for a person")
    if holder.startswith(REJECTION):
        return CaseHold(item=item, by=f"the rejection of {holder.removeprefix(REJECTION)}")
    live = cases.get(CaseId(holder))
    return CaseHold(item=item, by=f"exlet {holder}", over=live is None or not live.document.live)


def sentence(case: CaseId, holds: Iterable[CaseHold]) -> str:
    """Who suspends what, and what to do about it; empty if nothing is suspended."""
    return "; ".join(_hold_sentence(case, hold) for hold in holds)


def _hold_sentence(case: CaseId, hold: CaseHold) -> str:
    what = f"item {hold.item} of case {case}" if hold.item is not None else f"case {case}"
    over = ", which is over and will not let it go" if hold.over else ""
    command = f"mendflow resume {case}" + (f" {hold.item}" if hold.item is not None else "")
    return f"{what} is suspended by {hold.by}{over}: `{command}` resumes it"
