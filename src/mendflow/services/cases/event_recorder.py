"""Applies new events to a case and appends them to its journal.

An event that turns out to be long is taken back: it is applied again without its steps, which are done aside. An
internal error in a case ends that case, and no other. Now and then a snapshot is written, to bound the replay."""

import logging
from collections.abc import Callable
from contextlib import nullcontext

import msgspec

from mendflow.core.engine import evolve_new, snapshot
from mendflow.core.engine.messages import CUT_AT_ONCE, Event, FireTimer, Order, Proceed
from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.ids import CaseId
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.case_reader import SNAPSHOT_EVERY_EVENTS, CaseReader
from mendflow.services.cases.interrupted_cases import InterruptedCases
from mendflow.services.cases.live_case import SNAPSHOT_KIND, CaseDocument, LiveCase, Snapshot
from mendflow.services.cases.long_steps import LongSteps

log = logging.getLogger("mendflow.cases")

SNAPSHOT_EVERY_WORK = 300_000
"""Work on XML, as the engine's meter counts it: after more than this a snapshot is written, so that it is not
repeated."""

SNAPSHOT_WORK_PER_BYTE = 8
"""So much more work for each byte of the state: doing it takes some twenty times as long as writing the state does,
which everybody else's commits wait for."""

_encode = msgspec.json.Encoder().encode


class EventRecorder:
    """`live` are the cases that are not over, by id; `give_up` ends a case that cannot continue, with a sentence that
    says why."""

    def __init__(
        self,
        ledger: Ledger,
        reader: CaseReader,
        live: dict[CaseId, LiveCase],
        long_steps: LongSteps | None,
        give_up: Callable[[CaseDocument, str], None],
    ) -> None:
        self._ledger = ledger
        self._live = live
        self._long_steps = long_steps
        self._give_up = give_up
        self._interrupted = InterruptedCases(reader, ledger)

    def is_aside(self, live: LiveCase) -> bool:
        """Whether the steps of this case are done aside by now."""
        return self._long_steps is not None and self._long_steps.wants(live.document.project, live.case)

    async def recorded(self, live: LiveCase, events: list[Event]) -> list[Order]:
        """Apply new events and append them to the journal, each with where it was cut. One that turns out to be long is
        taken back, and then applied without its steps, which are done aside."""
        try:
            return self.record(live, events)
        except LongWork:
            return self.record(live, events) if await self.take_back(live) else []

    def record(self, live: LiveCase, events: list[Event]) -> list[Order]:
        """The same, but an event that turns out to be long raises LongWork: then the case has to be taken back."""
        orders: list[Order] = []
        is_aside = self.is_aside(live)
        steps = self._long_steps if not is_aside else None
        for event in events:
            problem = ""
            if is_aside and not isinstance(event.fact, Proceed):
                event = Event(event.at, event.fact, CUT_AT_ONCE)
            try:
                with steps.interrupting(live.case) if steps is not None else nullcontext():
                    event, given = evolve_new(live.case, event)
                orders += given
            except LongWork:
                raise
            except Exception as error:  # a case that cannot continue must not affect the others
                log.exception("case %s has failed by an internal error; run it again", live.id, extra={"case": live.id})
                problem = f"internal error of mendflow: {error!r:.300}; run the case again"
            self.append(live, event)
            if problem:
                self._give_up(live.document, problem)
                return []
            if self._long_steps is not None and isinstance(event.fact, FireTimer):
                self._long_steps.count_timer(live.document.project)
            if work := live.case.meter.work:  # the end of an item most often is none
                live.work += work
                if self._long_steps is not None:
                    self._long_steps.count(live.document.project, work)
        return orders

    async def take_back(self, live: LiveCase) -> bool:
        """Take back the event that was interrupted. Returns whether the case is still here."""
        assert self._long_steps is not None
        self._long_steps.was_long(live.document.project)
        await self._interrupted.take_back(live)
        return self._live.get(live.id) is live

    def append(self, live: LiveCase, event: Event) -> None:
        """Append an event to the journal that has been applied."""
        self._ledger.append(live.journal, live.position, _encode(event))
        live.position += 1

    def save_snapshot_if_due(self, live: LiveCase) -> None:
        """Write a snapshot, to bound the replay. The interval between two snapshots grows with the size of the state,
        so that their cost does not."""
        due = live.position >= live.snapshot_due or live.work >= SNAPSHOT_EVERY_WORK
        if not due or live.id not in self._live:
            return
        state = snapshot(live.case)
        live.snapshot_due = live.position + max(SNAPSHOT_EVERY_EVENTS, len(state) // 200)
        live.work = -len(state) * SNAPSHOT_WORK_PER_BYTE
        self._ledger.touch(SNAPSHOT_KIND, live.id, Snapshot(case=live.id, position=live.position, state=state))
