"""Makes spans of what is over, and hands them to the exporter.

All times are by this server's clock. Times that a pilot measured by its own clock are shifted by the difference between
when it sent them and when they were received, and kept between the grant and the end, whatever the pilot's clock
says."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from mendflow.core.engine.messages import OfferTask, Order, StartCalledCase, SubmitJob
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Measurements, Outcome
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.recovery.ids import serial_of
from mendflow.core.scheduling import job_events
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.cases.facts import CaseEnded, ItemFinished, OrdersGiven
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.observe.tracing import ids
from mendflow.services.observe.tracing.spans import Span, fault_attributes
from mendflow.services.scheduling.facts import AttemptEnding
from mendflow.services.scheduling.pilot_records import PilotRecord

SpanSink = Callable[[Span], None]


class OpenItem:
    """An item that is under way."""

    __slots__ = ("at", "item", "kind")

    def __init__(self, item: ItemId, kind: str, at: Instant) -> None:
        self.item = item
        self.kind = kind
        self.at = at


class Tracer:
    """`offer` must return at once, whatever happens to the span. The tracer outlives the services, so items that were
    under way when the services were rebuilt keep their start."""

    def __init__(self, offer: SpanSink, clock: Clock) -> None:
        self._offer = offer
        self._clock = clock
        self._items: dict[CaseId, dict[int, OpenItem]] = {}

    def listen(self, hub: Hub, live: Mapping[CaseId, LiveCase], pilots: Mapping[PilotId, PilotRecord]) -> None:
        """Subscribe to the hub of services that were just built."""

        def ending(fact: AttemptEnding) -> None:
            case = live.get(fact.job.case)
            self.attempt_ending(fact.job, fact.event, pilots, case.document.flow if case is not None else "")

        hub.subscribe(OrdersGiven, lambda given: self.orders_given(given.live, given.orders))
        hub.subscribe(ItemFinished, lambda finished: self.item_ended(finished.live, finished.serial, finished.outcome))
        hub.subscribe(AttemptEnding, ending)
        hub.subscribe(CaseEnded, lambda end: self.case_ended(end.document))

    # Items

    def orders_given(self, live: LiveCase, orders: Sequence[Order]) -> None:
        """A case gave these orders, perhaps not for the first time."""
        for order in orders:
            if isinstance(order, SubmitJob):
                self._begin(live.id, order.serial, order.spec.item, "job")
            elif isinstance(order, OfferTask):
                self._begin(live.id, order.serial, order.item, "user-task")
            elif isinstance(order, StartCalledCase):
                self._begin(live.id, order.serial, order.item, "call")

    def _begin(self, case: CaseId, serial: int, item: ItemId, kind: str) -> None:
        self._items.setdefault(case, {}).setdefault(serial, OpenItem(item, kind, self._clock.now()))

    def item_ended(self, live: LiveCase, serial: int, outcome: Outcome) -> None:
        begun = self._items.get(live.id, {}).pop(serial, None)
        if begun is not None:
            self._offer(_item(live.document, serial, begun, self._clock.now(), outcome))

    # Attempts

    def attempt_ending(
        self, job: Job, event: job_events.JobEvent, pilots: Mapping[PilotId, PilotRecord], flow: str
    ) -> None:
        """An attempt is about to end with this event; the job is still as it was."""
        if job.state is not JobState.RUNNING or not isinstance(
            event, (job_events.JobFinished, job_events.AttemptRequeued)
        ):
            return
        serial = serial_of(job.id)
        begun = self._items.get(job.case, {}).get(serial)
        if begun is not None:  # this server may have learned of it only when it took the case over
            begun.at = min(begun.at, job.created_at)
        pilot = pilots.get(job.pilot) if job.pilot is not None else None
        for span in _attempt(job, serial, event, pilot, flow):
            self._offer(span)

    def spec_for_pilot(self, job: Job) -> JobSpec:
        """The job with its trace context in the environment. A trace context that the flow sets itself is not
        changed."""
        env = {"TRACEPARENT": ids.traceparent(job.case, job.id, job.fence), **job.spec.env}
        return msgspec.structs.replace(job.spec, env=env)

    # Repairs and cases

    def decision_closed(self, decision: Decision) -> None:
        if decision.exlet:
            self._offer(_repair(decision, decision.ended_at or self._clock.now()))

    def case_ended(self, document: CaseDocument) -> None:
        """Items that nobody waits for any more end with the case."""
        for serial, begun in self._items.pop(document.id, {}).items():
            self._offer(_item(document, serial, begun, document.ended_at, None))
        self._offer(_case(document))


def _case(document: CaseDocument) -> Span:
    parent = b""
    if document.parent is not None:
        parent = ids.item_span(document.parent, document.parent_serial)
    elif document.decision:
        parent = ids.repair_span(document.decision)
    return Span(
        trace=ids.trace_of_case(document.id),
        id=ids.case_span(document.id),
        parent=parent,
        name=f"case {document.flow}",
        start=document.started_at,
        end=document.ended_at,
        attributes={
            "mendflow.case": document.id,
            "mendflow.flow": document.flow,
            "mendflow.status": document.status,
            **fault_attributes(document.fault),
        },
        error=document.fault.message if document.fault is not None else "",
    )


def _item(document: CaseDocument, serial: int, begun: OpenItem, now: Instant, outcome: Outcome | None) -> Span:
    """If there is no outcome, its case ended first."""
    fault = outcome.fault if outcome is not None else None
    return Span(
        trace=ids.trace_of_case(document.id),
        id=ids.item_span(document.id, serial),
        parent=ids.case_span(document.id),
        name=f"{begun.kind} {begun.item}",
        start=begun.at,
        end=now,
        attributes={
            "mendflow.case": document.id,
            "mendflow.flow": document.flow,
            "mendflow.item": begun.item,
            "mendflow.serial": serial,
            "mendflow.end": "cancelled" if outcome is None else "failed" if fault is not None else "completed",
            **fault_attributes(fault, outcome.exit_code if outcome is not None else None),
        },
        error=fault.message if fault is not None else "",
    )


def _attempt(job: Job, serial: int, event: job_events.JobEvent, pilot: PilotRecord | None, flow: str) -> list[Span]:
    """The attempt, and its parts one after the other."""
    assert isinstance(event, (job_events.JobFinished, job_events.AttemptRequeued)) and job.history
    outcome = (
        event.outcome
        if isinstance(event, job_events.JobFinished)
        else Outcome(fault=event.fault, measures=event.measures)
    )
    held, trace, own = job.history[-1], ids.trace_of_case(job.case), ids.attempt_span(job.id, job.fence)
    began = min(job.available_at, held.granted_at)
    attributes = {
        "mendflow.case": job.case,
        "mendflow.flow": flow,
        "mendflow.item": job.spec.item,
        "mendflow.job": job.id,
        "mendflow.attempt": job.tries,
        "mendflow.pilot": held.pilot,
        "mendflow.host": held.host,
        "mendflow.site": held.site,
        "mendflow.end": event.end,
        **fault_attributes(outcome.fault, outcome.exit_code),
    }
    attempt = Span(
        trace=trace,
        id=own,
        parent=ids.item_span(job.case, serial),
        name=f"attempt {job.tries} of {job.spec.item}",
        start=began,
        end=event.at,
        attributes=attributes,
        error=outcome.fault.message if outcome.fault is not None else "",
    )
    parts = [("queue", began, held.granted_at), *_run(outcome.measures, pilot, held.granted_at, event.at)]
    return [attempt, *(_part(job, trace, own, name, start, end) for name, start, end in parts)]


def _part(job: Job, trace: bytes, parent: bytes, name: str, start: Instant, end: Instant) -> Span:
    return Span(trace=trace, id=ids.part_span(job.id, job.fence, name), parent=parent, name=name, start=start, end=end)


def _run(
    measures: Measurements, pilot: PilotRecord | None, granted_at: Instant, at: Instant
) -> list[tuple[str, Instant, Instant]]:
    """Staging in, running, and staging out; nothing for an attempt that its pilot did not report."""
    if pilot is None or not pilot.sent_at or not measures.started_at or not measures.ended_at:
        return []
    over_ms = pilot.seen_at - pilot.sent_at
    started = min(max(measures.started_at + over_ms, granted_at), at)
    ended = min(max(measures.ended_at + over_ms, started), at)
    return [("stage-in", granted_at, started), ("run", started, ended), ("stage-out", ended, at)]


def _repair(decision: Decision, ended_at: Instant) -> Span:
    found = decision.conclusion
    links: tuple[bytes, ...] = ()
    if decision.type is ExceptionType.ABORT:
        links = tuple(ids.attempt_span(job, fence) for job, fence in _failed(decision.id))
    name = CaseId(f"{decision.engine}:{decision.case}" if decision.engine else decision.case)
    return Span(
        trace=ids.trace_of_case(name),
        id=ids.repair_span(decision.id),
        parent=ids.item_span(name, decision.serial) if decision.serial else ids.case_span(name),
        links=links,
        name=f"repair {decision.exlet}",
        start=decision.at,
        end=ended_at,
        attributes={
            "mendflow.case": name,
            "mendflow.flow": decision.flow,
            "mendflow.item": decision.item or "",
            "mendflow.exception": decision.type.value,
            "mendflow.rules": found.rules if found is not None else "",
            "mendflow.rule": found.rule if found is not None else 0,
            "mendflow.exlet": decision.exlet,
            "mendflow.outcome": decision.result or decision.state,
            **fault_attributes(decision.fault),
        },
        error=decision.note if decision.state == "failed" else "",
    )


def _failed(decision: str) -> list[tuple[JobId, int]]:
    """The attempt that an abort is about: its event is named after the job and the fence."""
    job, _, rest = decision.partition(":")
    fence = rest.partition(":")[0].partition("/")[0]
    return [(JobId(job), int(fence))] if fence.isdigit() else []
