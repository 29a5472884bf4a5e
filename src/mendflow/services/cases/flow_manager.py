"""The flow manager: it sequences cases, and leaves execution to the meta-scheduler.

A command is decided, its events are appended to the journal and applied to the case, and the orders that follow are
carried out, all in one step without waiting: so a case never sees two commands at once and needs no lock. Everything
that leaves the process waits for the ledger. After a crash each live case is loaded again and asked for its open
orders; every order can be repeated."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec

from mendflow.core.engine import (
    Case,
    LiveItem,
    StaleAnswer,
    decide,
    find_item,
    outstanding_orders,
)
from mendflow.core.engine.messages import (
    Command,
    Event,
    FinishItem,
    FireTimer,
    Order,
    Proceed,
    RestartItem,
    Resume,
    StartCase,
    Suspend,
)
from mendflow.core.engine.plan import Plan
from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.errors import NotFound, StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.jobs import Job, Outcome
from mendflow.core.model.repair import ExceptionType
from mendflow.core.results.earlier_results import EarlierResults
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.counters import ServerMetrics
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import CaseTree, HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.case_reader import SNAPSHOT_EVERY_EVENTS, CaseReader
from mendflow.services.cases.event_recorder import EventRecorder
from mendflow.services.cases.facts import (
    CaseAdmission,
    CaseEnded,
    CaseLeft,
    ItemFinished,
    OrderExecutor,
    SuspensionChanged,
    UndoLibrary,
)
from mendflow.services.cases.flow_compiler import FlowCompiler, FlowMemo
from mendflow.services.cases.interception_points import InterceptionPoints
from mendflow.services.cases.live_case import (
    ITEM_KIND,
    RUNS_KIND,
    SNAPSHOT_KIND,
    CaseDocument,
    LiveCase,
    journal_of,
)
from mendflow.services.cases.live_inputs import LiveInputs, kept_defaults, small_defaults
from mendflow.services.cases.long_steps import LongSteps, StepFailed
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.cases")

DOCUMENTS_READ = 500
"""So many documents of cases are read at once."""

_decode_event = msgspec.json.Decoder(Event).decode
_decode_document = msgspec.json.Decoder(CaseDocument).decode


class FlowManager:
    """`live` are the cases that are not over, by id; `points` are where a case waits for the exception service."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        homes: HomeRegistry,
        hub: Hub,
        live: dict[CaseId, LiveCase],
        points: InterceptionPoints,
        counts: ServerMetrics,
        counted_name: Callable[[str, str], Awaitable[str]],
        compiler: FlowCompiler,
        long_steps: LongSteps | None = None,
        live_inputs: LiveInputs | None = None,
    ) -> None:
        self._counted_name = counted_name
        self._compiler = compiler
        self._live_inputs = live_inputs or LiveInputs()
        self._defaults = FlowMemo(small_defaults)
        self._long_steps = long_steps
        self.reader = CaseReader(
            store=store, ledger=ledger, clock=clock, events=events, homes=homes, hub=hub, long_steps=long_steps
        )
        self._recorder = EventRecorder(ledger, self.reader, live, long_steps, self._give_up)
        self._hub = hub
        self._hear_ends = hub.listeners(ItemFinished)
        self._homes = homes
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._events = events
        self._points = points
        self._executor = hub.need(OrderExecutor, self)
        self.live = live
        self.counts = counts

    async def load(self, tree: CaseTree) -> list[LiveCase]:
        """Load the cases of a tree that are not over. All are put into memory in one step, so that none is seen without
        the cases that it refers to."""
        found = await self.reader.read_tree(tree, self._give_up)
        for live in found:
            await self._name_counted(live.document)
        for live in found:
            self.live[live.id] = live
            self._live_inputs.add(live.document)
            self._homes.hold(live.id, live.id)
            if live.document.live:
                self._events.begun(live.id)
        return found

    async def reissue_orders(self, cases: Sequence[LiveCase]) -> None:
        """Repeat the open orders of cases that were loaded. A case of which one raises an internal error has failed: it
        would raise it again whenever the cases are loaded."""
        for live in cases:
            if live.id not in self.live:
                continue
            try:
                await self._execute(live, outstanding_orders(live.case), reissued=True)
            except StoreUnavailable:
                raise
            except Exception as error:  # whatever is wrong with one case, the others must go on
                log.exception(
                    "case %s has failed by an internal error when it was loaded; run it again",
                    live.id,
                    extra={"case": live.id},
                )
                self._give_up(live.document, f"internal error of mendflow: {error!r:.300}; run the case again")

    def _give_up(self, document: CaseDocument, message: str) -> None:
        """An internal error in one case ends that case, and no other."""
        if (live := self.live.get(document.id)) is not None:
            self._points.forget(live)
        self._drop_case(document.id)
        self.count_ended(document, "failed")
        document.status, document.ended_at = "failed", self._clock.now()
        document.fault = Fault(name="unreadable", category=Category.FLOW, message=message)
        self._hub.publish(CaseEnded(document))
        self._ledger.touch(CASE_KIND, document.id, document, last=True)
        self._events.tell(document.ended_at, "case", document.id, state="failed", message=message)
        self._events.ended(document.id)

    def _drop_case(self, case: CaseId) -> None:
        self._hub.publish(CaseLeft(case))
        self.live.pop(case, None)
        self._live_inputs.remove(case)
        self._homes.release(case, case)

    async def begin(self, document: CaseDocument, flow: Flow, earlier: list[Job], *, later: bool = False) -> LiveCase:
        """Start a case; refused if its inputs do not match the flow. `later`: called before the first orders are
        carried out."""
        await self._homes.wait_until_loaded(document.id)
        plan = await self._compiler.plan_of(flow, alone=document.parent is not None)
        await self._name_counted(document)
        if document.id in self.live:
            return self.live[document.id]
        now, library = self._clock.now(), self._hub.provider(UndoLibrary)
        document.defaults = kept_defaults(self._defaults.of(flow), document.inputs)
        command = StartCase(
            case=document.id,
            flow=flow,
            inputs=document.inputs,
            parent=document.parent,
            later=later or ExceptionType.CASE_PRE in self._points.watched[document.flow],
            remember=library.tasks if library is not None else (),
        )
        events = decide(Case.blank(), command, now, is_compiled=True)
        admission = self._hub.provider(CaseAdmission) if document.counted_project else None
        try:
            if admission is not None:
                await admission.admit(document.id, document.project)
                if document.id in self.live:  # somebody else began it meanwhile
                    return self.live[document.id]
            self._live_inputs.admit(document)
            with self._ledger.atomic():
                return await self._begin(document, plan, events, earlier, now)
        finally:  # also if whoever wants it has left while it was admitted
            if document.id not in self.live:
                self._live_inputs.remove(document.id)
                if admission is not None:
                    admission.dismiss(document.id, document.project)

    async def _begin(
        self, document: CaseDocument, plan: Plan, events: list[Event], earlier: list[Job], now: Instant
    ) -> LiveCase:
        live = LiveCase(Case.blank(plan), document)
        live.is_started_here = True
        live.earlier = EarlierResults(earlier) if document.rerun_of is not None else None
        live.snapshot_due = SNAPSHOT_EVERY_EVENTS
        document.started_at = now
        self.live[live.id] = live
        self._homes.hold(live.id, live.id)
        self.counts.cases_started.add(document.counted_flow)
        self._ledger.touch(CASE_KIND, live.id, document)
        self._events.tell(now, "case", live.id, state="running")
        await self._carry_out(live, await self._recorder.recorded(live, events))
        return live

    async def document(self, case: CaseId) -> CaseDocument | None:
        """The document of a case, live or over, if there is such a case."""
        live = self.live.get(case)
        if live is not None:
            return live.document
        await self._ledger.settled()
        found = await self._store.get(CASE_KIND, case)
        return _decode_document(found.body) if found is not None else None

    async def documents(self, cases: Sequence[CaseId]) -> dict[CaseId, CaseDocument]:
        """The documents of those of the cases that there are."""
        found = {case: self.live[case].document for case in cases if case in self.live}
        rest = [case for case in cases if case not in found]
        await self._ledger.settled()
        for at in range(0, len(rest), DOCUMENTS_READ):
            for each in await self._store.get_many(CASE_KIND, rest[at : at + DOCUMENTS_READ]):
                found[CaseId(each.id)] = _decode_document(each.body)
        return found

    async def _name_counted(self, document: CaseDocument) -> None:
        """For good: at its end a case is counted by the name that it began under. While the store is away it gets none:
        it is asked for again when the case is loaded, or counted anew."""
        if not document.counted_as:
            with suppress(StoreUnavailable):
                document.counted_as = await self._counted_name(document.flow, document.project)

    def count_ended(self, document: CaseDocument, status: str) -> None:
        self.counts.cases_ended.add(document.counted_flow, status)

    async def flow_of(self, case: CaseId) -> Flow:
        """The flow that a case, live or over, was started with."""
        live = self.live.get(case)
        if live is not None:
            return live.flow
        await self._ledger.settled()
        entries = await self._store.read(journal_of(case), 0, 1)
        first = _decode_event(entries[0]).fact if entries else None
        if not isinstance(first, StartCase):
            raise NotFound(f"case {case} never began, so it has no flow; start it again")
        return first.flow

    async def command(self, case: CaseId, command: Command) -> None:
        """Apply a command to a live case. Raises what `decide` raises."""
        await self._homes.wait_until_loaded(case)
        live = await self.at_hand(case)
        if live is None:
            raise NotFound(f"case {case} is not running")
        events = decide(live.case, command, self._clock.now())
        if isinstance(command, Proceed) and self._long_steps is not None and self._recorder.is_aside(live):
            async with self._long_steps.turn(live.document.project):
                await asyncio.sleep(await self._proceed_aside(case, command, self._long_steps))
            return
        with self._ledger.atomic():
            begun = find_item(live.case, command.item) if isinstance(command, RestartItem) else None
            try:
                orders = self._recorder.record(live, events)
            except LongWork:
                if not await self._recorder.take_back(live):
                    raise NotFound(f"case {case} is not running") from None
                if isinstance(command, Proceed):
                    await self.command(case, command)
                    return
                orders = self._recorder.record(live, events)
            if begun is not None:
                self._note_run(live, begun)
            if isinstance(command, Suspend | Resume):
                self._note_status(live)
                self._hub.publish(SuspensionChanged(live))
            await self._go_on(live, orders)

    async def _go_on(self, live: LiveCase, orders: list[Order]) -> None:
        self._note_status(live)
        await self._carry_out(live, orders)
        if live.held:
            await self._points.recheck(live)

    # Long steps

    async def at_hand(self, case: CaseId) -> LiveCase | None:
        """The case in memory, when no step of it is being done aside."""
        while (live := self.live.get(case)) is not None and live.away is not None:
            await live.away.wait()
        return live

    async def later(self, case: CaseId, go: Callable[[], Awaitable[None]]) -> None:
        """Do something when no step of the case is being done aside."""
        await self.at_hand(case)
        await go()

    @asynccontextmanager
    async def _alone_with(self, case: CaseId, long_steps: LongSteps) -> AsyncIterator[LiveCase | None]:
        """Wait until the case is at hand and the process is free. Nobody who has the process waits for a case: one that
        is being taken back may need the process first."""
        while True:
            await self.at_hand(case)
            async with long_steps.alone():
                if (live := self.live.get(case)) is None or live.away is None:
                    yield live
                    return

    async def _proceed_aside(self, case: CaseId, command: Proceed, long_steps: LongSteps) -> float:
        """Do a step in another process. The case does not change meanwhile: whoever has a command for it waits, and is
        served before the next step. Returns how long its project rests."""
        async with self._alone_with(case, long_steps) as live:
            if live is None:
                return 0.0
            [event] = decide(live.case, command, self._clock.now())
            live.away, problem = asyncio.Event(), ""
            try:
                done = await long_steps.do(live.document.project, live.case, event)
            except StepFailed as error:
                problem = f"internal error of mendflow: {error}; run the case again"
            finally:
                live.away.set()
                live.away = None
        if self.live.get(live.id) is not live:
            return 0.0  # another server has it by now
        with self._ledger.atomic():
            if problem:
                log.error("case %s has failed: %s", live.id, problem, extra={"case": live.id})
                self._recorder.append(live, event)
                self._give_up(live.document, problem)
                return 0.0
            live.case = done.case
            self._recorder.append(live, done.event)
            live.work += done.work
            await self._go_on(live, done.orders)
        return done.rest_s

    async def finish(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        """The order of an item has ended. Reported twice, it counts once."""
        if self._homes.loads_some:
            await self._homes.wait_until_loaded(case)
        live = self.live.get(case)
        if live is not None and live.away is not None:
            live = await self.at_hand(case)
        if live is None:
            return
        try:
            events = decide(live.case, FinishItem(serial=serial, outcome=outcome), self._clock.now())
        except StaleAnswer:
            return
        if self._hear_ends:
            self._hub.publish(ItemFinished(live, serial, outcome))
        with self._ledger.atomic():
            orders = await self._recorder.recorded(live, events)
            if self.live.get(case) is not live:
                return
            live.note_told(serial)
            if orders:
                await self._carry_out(live, orders)
            elif live.document.posted:
                self.close(live)

    def close(self, live: LiveCase) -> None:
        """The case is over. It stays in memory until the forgotten jobs that it started are acknowledged, so that it
        survives a restart; then it leaves memory."""
        live.document.posted = bool(live.case.posted)
        self._ledger.touch(CASE_KIND, live.id, live.document, last=not live.document.posted)
        if not live.document.posted:
            self._ledger.drop(SNAPSHOT_KIND, live.id)
            for noted in live.noted:
                self._ledger.leave(ITEM_KIND, noted)
            for item in live.runs:
                self._ledger.leave(RUNS_KIND, f"{live.id}/{item}")
            self._drop_case(live.id)

    async def fire(self, case: CaseId, serial: int) -> None:
        await self._command_if_due(case, FireTimer(serial=serial))

    async def proceed(self, case: CaseId, serial: int) -> None:
        await self._command_if_due(case, Proceed(serial=serial))

    async def _command_if_due(self, case: CaseId, command: FireTimer | Proceed) -> None:
        try:
            await self.command(case, command)
        except (StaleAnswer, NotFound):
            pass  # the case has gone on without it

    def _note_run(self, live: LiveCase, begun: LiveItem) -> None:
        """An item was restarted: its earlier orders belong to an earlier run."""
        if begun.serial and begun.serial not in live.case.index.serials:
            runs = live.record_restart(begun.item, begun.name, begun.kind, begun.serial)
            self._ledger.touch(RUNS_KIND, f"{live.id}/{begun.item}", runs)

    def _note_status(self, live: LiveCase) -> None:
        status = live.case.status
        if live.id not in self.live:
            return  # given up
        if (status == "running" or status == "suspended") and status != live.document.status:
            live.document.status = status
            self._ledger.touch(CASE_KIND, live.id, live.document)
            self._events.tell(self._clock.now(), "case", live.id, state=status)

    async def _execute(self, live: LiveCase, orders: Sequence[Order], *, reissued: bool = False) -> None:
        await self._executor().carry_out(live, orders, reissued=reissued)

    async def _carry_out(self, live: LiveCase, orders: list[Order]) -> None:
        await self._execute(live, orders)
        self._recorder.save_snapshot_if_due(live)
