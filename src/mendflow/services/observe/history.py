"""The history of a case: what its engine recorded, what pilots and people did, what the exception service decided.

The journal holds only facts; what followed from them is computed by replaying it through the engine. So the history
cannot differ from what happened."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from mendflow.core.engine import Case, Replay
from mendflow.core.engine.elements import element_of
from mendflow.core.engine.messages import (
    CallPartner,
    Cancel,
    CancelCalledCase,
    CancelJob,
    CaseMoved,
    CaseReopened,
    Deliver,
    EndCase,
    Event,
    Fact,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    ItemFailed,
    ItemSkipped,
    OfferTask,
    Order,
    RemoveItem,
    RestartItem,
    Resume,
    RunPrimitive,
    RunStyleSheet,
    StageFiles,
    StartCalledCase,
    StartCase,
    SubmitJob,
    Suspend,
    WithdrawTask,
    WriteData,
)
from mendflow.core.model.ids import CaseId, Instant, ItemId, item_name
from mendflow.core.model.jobs import Attempt, Job, Requeue
from mendflow.core.model.repair import BY_HAND, Conclusion, Decision, ExceptionType
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.model.views import ItemView
from mendflow.services.cases.live_case import journal_of
from mendflow.stores.contract import Store

PAGE_EVENTS = 500
_decode_event = msgspec.json.Decoder(Event).decode

_END_LIFECYCLES = {"completed": "complete", "failed": "pi_abort", "cancelled": "withdraw"}
_COMMAND_WORDS: dict[type, tuple[str, str]] = {
    Suspend: ("suspended", "suspend"),
    Resume: ("continued", "resume"),
    Cancel: ("removed", "withdraw"),
    RestartItem: ("restarted", "reassign"),
    ForceComplete: ("force-completed", "manualskip"),
    ForceFail: ("force-failed", "ate_abort"),
    RemoveItem: ("removed", "withdraw"),
    WriteData: ("written", ""),
}
_ORDER_WORDS: dict[type, tuple[str, str]] = {
    SubmitJob: ("submitted", "schedule"),
    OfferTask: ("offered", "schedule"),
    StageFiles: ("staging", "schedule"),
    StartCalledCase: ("called", "start"),
    CallPartner: ("asked", "start"),
    RunPrimitive: ("mending", "start"),
    RunStyleSheet: ("transforming", "start"),
}
_WITHDRAWAL_WORDS: dict[type, tuple[str, str]] = {
    CancelJob: ("cancelled", "withdraw"),
    CancelCalledCase: ("cancelled", "withdraw"),
    WithdrawTask: ("withdrawn", "withdraw"),
}


async def journal(store: Store, case: CaseId) -> list[HistoryEntry]:
    """What the engine did, from the first event to the last."""
    return (await read_journal(store, case)).entries


async def read_journal(store: Store, case: CaseId) -> "JournalReader":
    reader, position = JournalReader(case), 0
    while page := await store.read(journal_of(case), position, PAGE_EVENTS):
        for entry in page:
            reader.take(entry)
        position += len(page)
        await asyncio.sleep(0)  # a long journal must not block other requests
    return reader


class _Outgoing(NamedTuple):
    """An order that went out: the item, the word for the kind of order, and the name to show."""

    item: ItemId
    what: str
    name: str


class JournalReader:
    """Replays the journal and records the orders of the engine, and the events that it got."""

    def __init__(self, case: CaseId) -> None:
        self._id = case
        self._replay = Replay()
        self._items: dict[int, _Outgoing] = {}  # by serial
        self.entries: list[HistoryEntry] = []
        self._ends: list[tuple[int, int]] = []  # the place of each entry that ends an item, and the item's serial

    @property
    def _case(self) -> Case:
        return self._replay.case

    def serials_of(self, last: int) -> list[int]:
        """The serials of the items that the last so many entries end."""
        first = bisect_left(self._ends, (len(self.entries) - last, 0)) if last else 0
        return [serial for _, serial in self._ends[first:]]

    def take(self, entry: bytes) -> None:
        """The next entry of the journal."""
        event = _decode_event(entry)
        self._add_fact(event.at, event.fact)
        for order in self._replay.take(event):
            self._add_order(event.at, order)

    def _add_fact(self, at: Instant, fact: Fact) -> None:
        match fact:
            case StartCase():
                self._add(at, "started", name=str(fact.flow.name), lifecycle="start")
            case FinishItem(serial=serial) if serial in self._items:
                self._add_finish(at, fact)
            case Deliver():
                self._add(at, "message", name=fact.channel, lifecycle="complete", message=f"to channel {fact.channel}")
            case FireTimer(serial=serial):
                self._add(at, "timer", name="timer", lifecycle="complete", message=f"timer {serial}")
            case CaseMoved(server=server):
                flow = _flow_name(self._case)
                self._add(at, "moved", name=flow, lifecycle="", message=f"server {server} goes on with it")
            case CaseReopened(by=by):
                self._add_reopening(at, by)
            case _ if type(fact) in _COMMAND_WORDS:
                self._add_command(at, fact)

    def _add_reopening(self, at: Instant, by: str) -> None:
        if self.entries and self.entries[-1].what == "reopened":
            self.entries.pop()  # it was not written to its end
        self.entries.append(
            HistoryEntry(
                at=at,
                case=self._id,
                source="person",
                what="reopened",
                name=_flow_name(self._case),
                lifecycle="resume",
                by=by,
                message="it goes on from where it stood",
            )
        )

    def _add_finish(self, at: Instant, fact: FinishItem) -> None:
        out, fault = self._items[fact.serial], fact.outcome.fault
        self._ends.append((len(self.entries), fact.serial))
        if fault is not None:
            self._add(at, "failed", name=out.name, item=out.item, lifecycle="ate_abort", message=fault.message)
            return
        cached = f"cached from {fact.outcome.cached_from}" if fact.outcome.cached_from else ""
        what = {"staging": "staged", "mending": "mended", "transforming": "transformed"}.get(out.what, "completed")
        self._add(at, what, name=out.name, item=out.item, lifecycle="complete", message=cached)

    def _add_command(self, at: Instant, fact: Fact) -> None:
        what, lifecycle = _COMMAND_WORDS[type(fact)]
        by, item = getattr(fact, "by", ""), getattr(fact, "item", None)
        message = getattr(fact, "reason", "")
        if isinstance(fact, ForceFail):
            message = fact.fault.message
        if isinstance(fact, WriteData):
            message = ", ".join(fact.values)
        self.entries.append(
            HistoryEntry(
                at=at,
                case=self._id,
                source="service" if by else "person",
                what=what,
                name=item_name(item) if item else _flow_name(self._case),
                item=item,
                lifecycle=lifecycle,
                by=by.rpartition("/")[0],
                message=message,
            )
        )

    def _add_order(self, at: Instant, order: Order) -> None:
        if isinstance(order, EndCase):
            message = order.fault.message if order.fault else ""
            self._add(
                at, order.status, name=_flow_name(self._case), lifecycle=_END_LIFECYCLES[order.status], message=message
            )
        elif isinstance(order, ItemSkipped):
            what, lifecycle = ("cancelled", "withdraw") if order.cancelled else ("skipped", "autoskip")
            self._add(at, what, item=order.item, lifecycle=lifecycle, message=order.reason)
        elif isinstance(order, ItemFailed):
            self._add(at, "failed", item=order.item, lifecycle="ate_abort", message=order.fault.message)
        elif type(order) in _ORDER_WORDS:
            self._add_outgoing(at, order)
        elif type(order) in _WITHDRAWAL_WORDS and (known := self._items.get(getattr(order, "serial", 0))):
            what, lifecycle = _WITHDRAWAL_WORDS[type(order)]
            self._add(at, what, name=known.name, item=known.item, lifecycle=lifecycle)

    def _add_outgoing(self, at: Instant, order: Order) -> None:
        what, lifecycle = _ORDER_WORDS[type(order)]
        item = order.spec.item if isinstance(order, SubmitJob) else getattr(order, "item", ItemId(""))
        name = order.do.value if isinstance(order, RunPrimitive) else item_name(item)
        self._items[getattr(order, "serial", 0)] = _Outgoing(item, what, name)
        element = element_of(self._case, getattr(order, "serial", 0))
        self._add(at, what, name=name, item=item, lifecycle=lifecycle, message=_order_text(order), element=element)

    def _add(
        self,
        at: Instant,
        what: str,
        *,
        name: str = "",
        item: ItemId | None = None,
        lifecycle: str = "",
        message: str = "",
        element: str = "",
    ) -> None:
        self.entries.append(
            HistoryEntry(
                at=at,
                case=self._id,
                source="engine",
                what=what,
                name=name or (item_name(item) if item else ""),
                item=item,
                lifecycle=lifecycle,
                message=message,
                element=element,
            )
        )


def _flow_name(case: Case) -> str:
    return str(case.flow.name) if case.flow else ""


def _order_text(order: Order) -> str:
    if isinstance(order, RunPrimitive):
        about = f" {order.about}" if order.about else ""
        return f"{order.do.value} {order.target}{about}"
    if isinstance(order, StartCalledCase):
        return order.name
    if isinstance(order, OfferTask):
        return f"to {order.role}"
    if isinstance(order, CallPartner):
        return f"{order.operation} of {order.partner}"
    if isinstance(order, RunStyleSheet):
        return f"by {order.sheet}"
    return ""


def attempts(jobs: Iterable[Job], decisions: Iterable[Decision] = (), *, now: Instant = 0) -> Iterator[HistoryEntry]:
    """What pilots did: each attempt's start and end. The end of an attempt is recorded after it was decided about: what
    was decided follows from it all the same. `now` is the server's time, if it is known."""
    decided_at: dict[str, list[Instant]] = {}
    for decision in decisions:
        decided_at.setdefault(decision.id.partition(":")[0], []).append(decision.at)
    for job in jobs:
        again = job.id.partition("~")[2]
        for number, attempt in enumerate(job.history, 1):
            if attempt.end == "returned" and attempt.requeue is None:
                continue  # the grant came back, and the attempt never began
            text = f"attempt {number}" + (f" of submission {again}" if again else "")
            known = {"case": job.case, "source": "pilot", "item": job.spec.item, "name": item_name(job.spec.item)}
            begun = _begun_at(attempt, now)
            yield msgspec.convert(
                {**known, "at": begun, "what": "began", "lifecycle": "start", "by": attempt.pilot, "message": text},
                HistoryEntry,
            )
            requeue = attempt.requeue or (None if attempt.end else job.requeued)
            if requeue is not None:
                yield _requeue_entry(job, requeue, text, begun)
            elif attempt.end and attempt.end != "completed":
                why = f"{text}: {attempt.fault.message}" if attempt.fault else text
                yield msgspec.convert(
                    {
                        **known,
                        "at": _failed_at(attempt.ended_at, begun, decided_at.get(job.id, ())),
                        "what": attempt.end,
                        "lifecycle": "withdraw" if attempt.end == "cancelled" else "ate_abort",
                        "by": attempt.pilot,
                        "message": why,
                    },
                    HistoryEntry,
                )


def _begun_at(attempt: Attempt, now: Instant) -> Instant:
    """When an attempt began: by its pilot's clock, where that agrees with what the server saw. A clock that is ahead
    still says how long the attempt took."""
    told, seen_until = attempt.measures.started_at, attempt.ended_at or now
    if told <= attempt.granted_at or not seen_until or told < seen_until:
        return max(attempt.granted_at, told)
    took_ms = max(attempt.measures.ended_at - told, 1)
    return max(attempt.granted_at, attempt.ended_at - took_ms) if attempt.ended_at else attempt.granted_at


def _failed_at(ended_at: Instant, begun: Instant, decided: Iterable[Instant]) -> Instant:
    """When an attempt failed: after its start, and before what was decided about it."""
    return min((at for at in decided if begun < at <= ended_at), default=max(ended_at, begun + 1))


def _requeue_entry(job: Job, requeue: Requeue, text: str, begun: Instant) -> HistoryEntry:
    """A person requeued the job."""
    return HistoryEntry(
        at=max(requeue.at, begun + 1),
        case=job.case,
        source="person",
        what="requeued",
        name=item_name(job.spec.item),
        item=job.spec.item,
        lifecycle="reassign",
        by=requeue.by,
        message=f"{text}: {requeue.reason}" if requeue.reason else text,
    )


def steps_of(entries: Iterable[HistoryEntry]) -> list[ItemView]:
    """The primitives of an exlet as items: the journal is the only record of them."""
    found: dict[ItemId, ItemView] = {}
    for entry in entries:
        if entry.item is None:
            continue
        if entry.what == "mending":
            found[entry.item] = ItemView(
                case=entry.case,
                item=entry.item,
                name=entry.name,
                kind="mend",
                serial=len(found) + 1,
                state="running",
                created_at=entry.at,
                reason=entry.message,
            )
        elif entry.item in found:
            state = {"mended": "completed", "failed": "failed"}.get(entry.what, "cancelled")
            found[entry.item] = msgspec.structs.replace(found[entry.item], state=state, ended_at=entry.at)
    return list(found.values())


def primitives(entries: Iterable[HistoryEntry], decision: Decision) -> Iterator[HistoryEntry]:
    """What an exlet did, step by step, as part of the history of the case that it mends."""
    for entry in entries:
        if entry.item is not None:
            yield msgspec.structs.replace(entry, source="service", decision=decision.id, exlet=decision.exlet)


def decision_entries(decisions: Iterable[Decision]) -> Iterator[HistoryEntry]:
    """What the exception service concluded, and the result."""
    for decision in decisions:
        if raised := _trigger_entry(decision):
            yield raised
        if raised and decision.state == "waiting":
            continue
        known = HistoryEntry(
            at=decision.taken_up_at or decision.at,
            case=decision.case,
            source="service",
            what="decided" if decision.exlet else decision.state,
            name=decision.exlet or decision.task or decision.type.value,
            item=decision.item,
            lifecycle="start" if decision.exlet else "",
            by=_rule_of(decision),
            message=_conclusion_text(decision),
            decision=decision.id,
            exlet=decision.exlet,
        )
        yield known
        if decision.ended_at and decision.state in ("done", "failed", "rejected"):
            came = decision.result or decision.state
            text = f"{decision.exlet}: {came}" + (f" ({decision.note})" if decision.note else "")
            how = "complete" if decision.state == "done" else "ate_abort"
            at = max(decision.ended_at, decision.settled_at)
            yield msgspec.structs.replace(known, at=at, what="repaired", message=text, lifecycle=how)


def _trigger_entry(decision: Decision) -> HistoryEntry | None:
    """A trigger, at the time when it was raised; the repair may have come much later."""
    trigger = decision.context.get("trigger")
    if not trigger or "!" in decision.id:  # a decision that replaces another was raised with it
        return None
    by = ((decision.context.get("event") or {}).get("data") or {}).get("by", "")
    unknown = "; no rule knew it: the case was suspended, and the administrator told"
    return HistoryEntry(
        at=decision.at,
        case=decision.case,
        source="person",
        what="raised",
        name=decision.task or str(trigger),
        item=decision.item,
        by=str(by),
        message=f"{trigger!r} was raised" + (unknown if decision.safeguard.startswith("waiting:") else ""),
        decision=decision.id,
    )


def _rule_of(decision: Decision) -> str:
    conclusion = decision.conclusion
    if conclusion is not None and conclusion.rule == BY_HAND:
        return conclusion.ordered_by or "a person"
    return _rule_words(conclusion) if conclusion else ""


def _rule_words(conclusion: Conclusion) -> str:
    """`default rule 8`, `night v2 rule 1`: of rules that somebody changed, with the version."""
    if conclusion.rules == DEFAULT_RULES and not conclusion.version:
        return f"default rule {conclusion.rule}"
    return f"{conclusion.rules} v{conclusion.version} rule {conclusion.rule}"


def _conclusion_text(decision: Decision) -> str:
    word = "failed" if decision.type is ExceptionType.ABORT else decision.type.value
    about = f"{word}: {decision.fault.message}" if decision.fault else word
    if not decision.exlet:
        waits = "no rule fits this, and it waits for a person"
        text = f"{about}; {waits if decision.state == 'waiting' else 'no rule fits this'}"
    else:
        text = f"{about}; runs {decision.exlet}"
    return "; ".join((*(f"rule {each.rule} on trial would run {each.exlet}" for each in decision.trials), text))
