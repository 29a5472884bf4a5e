"""What is left of the failures that an alert is about: one for each task of a flow, each cause and each day.

It asks of each failure what the counts and lists ask, whether anybody has taken it up; so an alert is over when no list
shows such a failure of its task any more."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import item_name
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.base.alerts import AlertDocument, OpenFailure
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.failures import (
    DAY_MS,
    DecisionSummary,
    group_id,
    handling_of,
    is_replaced,
    settled_by,
    started_case,
    unhandled_finding,
    whose,
)
from mendflow.stores.contract import FieldCondition, Store

PAGE: Final = 200
PAGES_MAX: Final = 50
"""So many pages of a day's failures of one task are read; of more, some are taken to be open."""

_decode = msgspec.json.Decoder(DecisionSummary).decode
_decode_whole = msgspec.json.Decoder(Decision).decode


class _Read(NamedTuple):
    brief: DecisionSummary
    body: bytes


async def open_failure(store: Store, alert: AlertDocument) -> OpenFailure:
    """A failure that the alert is about and that nobody has taken up, its own first. The alert stays as it is where
    its own failure is not found yet, or where there are too many to read. One that names an item of another task has
    none of its own."""
    where = _conditions(alert)
    own = [FieldCondition("case", alert.case), FieldCondition("item", alert.item), *where]
    own_failures = [each async for page in _pages(store, own) for each in page]
    if _names_its_task(alert) and not any(_is_about(each.brief, alert) for each in own_failures):
        return OpenFailure(alert.finding)
    found = await _first_open(store, own_failures, alert)
    if found.finding is not None:
        return found
    others = [*where, FieldCondition("state", ["ignored", "passive"], "in"), FieldCondition("result", "")]
    may_reopen, pages_read = found.may_reopen, 0
    async for page in _pages(store, others):
        found = await _first_open(store, page, alert)
        if found.finding is not None:
            return found
        may_reopen = may_reopen or found.may_reopen
        if (pages_read := pages_read + 1) == PAGES_MAX:
            return OpenFailure(alert.finding)
    return OpenFailure(None, may_reopen)


def _conditions(alert: AlertDocument) -> list[FieldCondition]:
    """Failures of its task, on its day; the signature of its cause is not in the alert."""
    flow, _, task = alert.subject.partition("/")
    day = int(alert.id.rpartition("-")[2]) * DAY_MS
    at = [FieldCondition("at", day, "ge"), FieldCondition("at", day + DAY_MS, "lt")]
    return [*at, FieldCondition("flow", flow), FieldCondition("task", task), FieldCondition("type", "abort")]


def _names_its_task(alert: AlertDocument) -> bool:
    return (item_name(alert.item) if alert.item is not None else "") == alert.subject.partition("/")[2]


async def _pages(store: Store, where: Sequence[FieldCondition]) -> AsyncIterator[list[_Read]]:
    last = None
    while page := await store.search(DECISION_KIND, where, order_by="at", descending=True, limit=PAGE, after=last):
        yield [_Read(_decode(each.body), each.body) for each in page]
        last = page[-1]


def _is_about(decision: DecisionSummary, alert: AlertDocument) -> bool:
    if decision.type is not ExceptionType.ABORT or group_id(decision.type, decision.signature) != alert.group:
        return False
    episode = alert.id.rpartition("/")[2]
    return episode.removeprefix(f"{alert.group}-").rpartition("-")[0] in ("", whose(decision))  # "": it is of before


async def _first_open(store: Store, read: Sequence[_Read], alert: AlertDocument) -> OpenFailure:
    about = [each for each in read if _is_about(each.brief, alert) and not is_replaced(each.brief)]
    settled = await settled_by(store, (each.brief for each in about))
    for brief, body in about:
        if handling_of(brief, settled) == "unhandled" and (finding := unhandled_finding(_decode_whole(body))):
            return OpenFailure(finding)
    known = (settled.get(started_case(each.brief)) for each in about)
    return OpenFailure(None, any(each is not None and each.may_reopen for each in known))
