"""What is left of the failures that an alert is about: one for each task of a flow, each cause and each day.

It asks of each failure what the counts and lists ask, whether anybody has taken it up; so an alert is over when no list
shows such a failure of its task any more."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId, item_name
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.base.alerts import AlertDocument, OpenFailure
from mendflow.services.base.readable_documents import read_or_leave_out
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
from mendflow.services.recovery.settled_cases import SettledCase, SettledCases
from mendflow.stores.contract import FieldCondition, Store

PAGE: Final = 200
ALERTS_AT_ONCE: Final = 50
PAGES_MAX: Final = 50
"""So many pages of a day's failures of one task are read; of more, some are taken to be open."""

_decode = msgspec.json.Decoder(DecisionSummary).decode
_decode_whole = msgspec.json.Decoder(Decision).decode


class _Read(NamedTuple):
    brief: DecisionSummary
    body: bytes


class _Settled:
    """What became of the cases of failures. Each case is read once, however many alerts are about it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked = set[CaseId]()
        self._known = dict[CaseId, SettledCase]()

    async def by(self, read: Iterable[_Read]) -> SettledCases:
        new = [each.brief for each in read if started_case(each.brief) not in self._asked]
        if new:
            self._known |= await settled_by(self._store, new)
            self._asked |= {started_case(each) for each in new}
        return self._known


async def open_failures(store: Store, alerts: Sequence[AlertDocument]) -> dict[str, OpenFailure]:
    """Of each alert, by its id, a failure that it is about and that nobody has taken up, its own first. It stays as it
    is where its own failure is not found yet, or where there are too many to read. One that names an item of another
    task has none of its own. What all tell of first is read together: that is most of what there is to read."""
    found: dict[str, OpenFailure] = {}
    for at in range(0, len(alerts), ALERTS_AT_ONCE):
        some = alerts[at : at + ALERTS_AT_ONCE]
        told = await _told_failures(store, some)
        settled = _Settled(store)
        known = await settled.by(each for read in told.values() for each in read)
        for alert in some:
            if _names_its_task(alert) and not told[alert.id]:
                found[alert.id] = OpenFailure(alert.finding)
                continue
            own = _first_open(told[alert.id], known)
            found[alert.id] = own if own.finding is not None else await _other_failure(store, alert, own, settled)
    return found


async def _told_failures(store: Store, alerts: Sequence[AlertDocument]) -> dict[str, list[_Read]]:
    """Of each alert the failures of the item that it names, the newest first."""
    found: dict[str, list[_Read]] = {alert.id: [] for alert in alerts}
    of_item = dict[tuple[str, str | None], list[AlertDocument]]()
    for alert in alerts:
        of_item.setdefault((alert.case, alert.item), []).append(alert)
    where = [
        FieldCondition("case", list(dict.fromkeys(case for case, _ in of_item)), "in"),
        FieldCondition("item", list(dict.fromkeys(item for _, item in of_item)), "in"),
        FieldCondition("type", "abort"),
    ]
    async for page in _pages(store, where):
        for read in page:
            for alert in of_item.get((read.brief.case, read.brief.item), ()):
                if _is_about(read.brief, alert):
                    found[alert.id].append(read)
    return found


async def _other_failure(store: Store, alert: AlertDocument, own: OpenFailure, settled: _Settled) -> OpenFailure:
    """The same of other items of its task."""
    others = [*_conditions(alert), FieldCondition("state", ["ignored", "passive"], "in"), FieldCondition("result", "")]
    may_reopen, pages_read = own.may_reopen, 0
    async for page in _pages(store, others):
        about = [each for each in page if _is_about(each.brief, alert)]
        found = _first_open(about, await settled.by(about))
        if found.finding is not None:
            return found
        may_reopen = may_reopen or found.may_reopen
        if (pages_read := pages_read + 1) == PAGES_MAX:
            return OpenFailure(alert.finding)
    return OpenFailure(None, may_reopen)


def _conditions(alert: AlertDocument) -> list[FieldCondition]:
    """Failures of its task, on its day; the signature of its cause is not in the alert."""
    flow, task = _flow_and_task(alert)
    day = _day(alert) * DAY_MS
    at = [FieldCondition("at", day, "ge"), FieldCondition("at", day + DAY_MS, "lt")]
    return [*at, FieldCondition("flow", flow), FieldCondition("task", task), FieldCondition("type", "abort")]


def _flow_and_task(alert: AlertDocument) -> tuple[str, str]:
    flow, _, task = alert.subject.partition("/")
    return flow, task


def _day(alert: AlertDocument) -> int:
    return int(alert.id.rpartition("-")[2])


def _names_its_task(alert: AlertDocument) -> bool:
    return (item_name(alert.item) if alert.item is not None else "") == _flow_and_task(alert)[1]


async def _pages(store: Store, where: Sequence[FieldCondition]) -> AsyncIterator[list[_Read]]:
    last = None
    while page := await store.search(DECISION_KIND, where, order_by="at", descending=True, limit=PAGE, after=last):
        read = ((read_or_leave_out(each, _decode), each.body) for each in page)
        yield [_Read(brief, body) for brief, body in read if brief is not None]
        if len(page) < PAGE:
            return
        last = page[-1]


def _is_about(decision: DecisionSummary, alert: AlertDocument) -> bool:
    if decision.type is not ExceptionType.ABORT or group_id(decision.type, decision.signature) != alert.group:
        return False
    if (decision.flow, decision.task) != _flow_and_task(alert) or decision.at // DAY_MS != _day(alert):
        return False
    episode = alert.id.rpartition("/")[2]
    return episode.removeprefix(f"{alert.group}-").rpartition("-")[0] in ("", whose(decision))  # "": it is of before


def _first_open(about: Sequence[_Read], settled: SettledCases) -> OpenFailure:
    counting = [each for each in about if not is_replaced(each.brief)]
    for brief, body in counting:
        if handling_of(brief, settled) == "unhandled" and (finding := unhandled_finding(_decode_whole(body))):
            return OpenFailure(finding)
    known = (settled.get(started_case(each.brief)) for each in counting)
    return OpenFailure(None, any(each is not None and each.may_reopen for each in known))
