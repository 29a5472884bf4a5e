"""Carries out the orders of cases: a table from the kind of order to the service that does it.

Every order may be repeated, and is then done once. An outcome that is known at once (a job that was over already, a
cached result) is reported to the case a moment later, never from within: so all orders of one event are given before
the next event, and a long chain of cached jobs is a loop and not a recursion."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from mendflow.core.engine import find_item, item_of
from mendflow.core.engine.elements import element_of
from mendflow.core.engine.messages import (
    CallPartner,
    CancelCalledCase,
    CancelJob,
    ContinueLater,
    DropTimer,
    EndCase,
    ItemDone,
    ItemEnded,
    ItemFailed,
    ItemSkipped,
    ListenerAdded,
    OfferTask,
    Order,
    ResumeJob,
    RunPrimitive,
    RunStyleSheet,
    SendReply,
    SetTimer,
    StageFiles,
    StartCalledCase,
    SubmitJob,
    SuspendJob,
    WithdrawTask,
)
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, JobId, item_name
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.model.repair import ExceptionType
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.cluster import LIVE_STATUSES, root_of
from mendflow.services.base.contracts import Clock, MetaScheduler, NewJob
from mendflow.services.base.events import EventStream
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.cases.called_cases import NOT_CALLED, CalledCases, outcome_of
from mendflow.services.cases.earlier_tasks import AnswerGrounds
from mendflow.services.cases.facts import CaseEnded, JobFailed, OrderExecutor, OrdersGiven, RecoveryHooks
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.interception_points import OUTGOING, InterceptionPoints
from mendflow.services.cases.item_ends import ItemEnds
from mendflow.services.cases.live_case import ITEM_KIND, ItemDocument, LiveCase
from mendflow.services.cases.partners import MessageBoard, PartnerCalls, StyleSheetRuns
from mendflow.services.cases.result_cache import ResultCache
from mendflow.services.cases.staging import FileStaging
from mendflow.services.cases.submission import Submitter
from mendflow.services.cases.timers import Timers
from mendflow.services.cases.user_tasks import UserTasks

REPLY_KIND = "reply"
WAITS: Final = frozenset({*OUTGOING, SetTimer, CallPartner, RunStyleSheet})
"""Orders by which an exlet shows that it waits for something."""

Handler = Callable[[LiveCase, Any, bool], Awaitable[None]]


class OrderDispatcher:
    def __init__(
        self,
        *,
        manager: FlowManager,
        calls: CalledCases,
        interception_points: InterceptionPoints,
        meta: MetaScheduler,
        submitter: Submitter,
        results: ResultCache,
        tasks: UserTasks,
        grounds: AnswerGrounds,
        staging: FileStaging,
        timers: Timers,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        notices: Notices,
        hub: Hub,
    ) -> None:
        self._hub = hub
        hub.provide(OrderExecutor, self)
        self._partners = hub.need(PartnerCalls, self)
        self._style_sheets = hub.need(StyleSheetRuns, self)
        self._board = hub.need(MessageBoard, self)
        self._manager = manager
        self._interception_points = interception_points
        self._meta = meta
        self._submitter = submitter
        self._results = results
        self._tasks = tasks
        self._grounds = grounds
        self._staging = staging
        self._timers = timers
        self._ledger = ledger
        self._clock = clock
        self._events = events
        self._notices = notices
        self._calls = calls
        self._background = BackgroundTasks(ledger)
        item_ends = ItemEnds(ledger, clock, events, hub, self._background)
        self._handlers: dict[type, Handler] = {
            SubmitJob: self._submit,
            CancelJob: self._cancel_job,
            SuspendJob: self._suspend_job,
            ResumeJob: self._resume_job,
            StageFiles: self._stage,
            OfferTask: self._offer,
            WithdrawTask: self._withdraw,
            SetTimer: self._set_timer,
            DropTimer: self._drop_timer,
            StartCalledCase: calls.start,
            CancelCalledCase: calls.cancel,
            CallPartner: self._call_partner,
            RunStyleSheet: self._transform,
            SendReply: self._send_reply,
            RunPrimitive: self._run_primitive,
            ContinueLater: self._begin_case,
            ItemSkipped: item_ends.skipped,
            ItemFailed: item_ends.failed_early,
            ItemDone: item_ends.done,
            ItemEnded: item_ends.forced,
            EndCase: self._end,
        }

    async def stop(self) -> None:
        await self._background.stop()

    async def carry_out(self, live: LiveCase, orders: Sequence[Order], *, reissued: bool = False) -> None:
        handlers = self._handlers
        if live.flow.xml is not None:
            orders = self._register_listeners(live, orders)
        self._hub.publish(OrdersGiven(live, orders))
        if self._interception_points.points(live).item_pre:
            for order in orders:
                handler = handlers[type(order)]
                if type(order) not in OUTGOING or not await self._interception_points.before_item(
                    live, order, reissued, handler
                ):
                    await handler(live, order, reissued)
        elif len(orders) > 1 and not reissued and self._may_submit_together(live):
            await self._carry_out_together(live, orders)
        else:
            for order in orders:
                await handlers[type(order)](live, order, reissued)
        waits = live.document.decision and any(type(order) in WAITS for order in orders)
        if waits and (recovery := self._hub.provider(RecoveryHooks)) is not None:
            self._background.start(recovery.exlet_is_waiting(live))

    def _may_submit_together(self, live: LiveCase) -> bool:
        """Whether its jobs are accepted or not for the same reason, and none has to wait until a result was looked
        for."""
        root = self._manager.live.get(root_of(live.id))
        return root is not None and root.document.confined is None and not self._results.is_asked_by(live)

    async def _carry_out_together(self, live: LiveCase, orders: Sequence[Order]) -> None:
        """Carry out orders one after the other, but jobs for our own queue that stand in a row with one submission."""
        together: list[NewJob] = []
        for order in orders:
            if type(order) is SubmitJob and not order.spec.domain and order.spec.submission is Submission.NOTIFY:
                spec = live.owned(order.spec, element_of(live.case, order.serial))
                job = JobId(f"{live.id}/{order.serial}")
                together.append(NewJob(job, live.id, spec, key=self._results.key_for(live, spec)))
                continue
            await self._submitter.submit_all(together)
            together = []
            await self._handlers[type(order)](live, order, False)
        await self._submitter.submit_all(together)

    async def job_finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        """A job has ended as far as the flow is concerned."""
        live = self._manager.live.get(case)
        if live is None:
            self._tell_of_another_try(case, serial, outcome)  # nobody waited for it, and its case is over
            return
        if live.away is not None:  # no pilot waits for a step that is done aside
            self._background.start(self._manager.later(case, partial(self.job_finished, case, serial, outcome)))
            return
        if not outcome.ok:
            await self._job_finished(case, serial, outcome)
            return
        if self._interception_points.points(live).item_post:
            go = partial(self._job_finished, case, serial, outcome)
            if self._interception_points.completing(live, serial, outcome, go):
                return
        self._tell_of_another_try(case, serial, outcome)
        await self._manager.finish(case, serial, outcome)

    async def _job_finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        self._tell_of_another_try(case, serial, outcome)
        if not outcome.ok and (live := self._manager.live.get(case)) is not None:
            self._hub.publish(JobFailed(live, serial, outcome))
        await self._manager.finish(case, serial, outcome)

    def _tell_of_another_try(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        recovery = self._hub.provider(RecoveryHooks)
        if recovery is not None and recovery.tried_again(case, serial):
            recovery.job_over(case, serial, outcome.ok)

    async def finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        """A user task, a staging or a called case is over."""
        live = self._manager.live.get(case)
        if live is None:
            return
        go = partial(self._finished, case, serial, outcome)
        if outcome.ok and self._interception_points.points(live).item_post:
            aside = self._interception_points.completing(live, serial, outcome, go)
        else:
            aside = not outcome.ok and self._interception_points.failing(live, serial, outcome, go)
        if not aside:
            await go()

    async def _finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        """Mark the item as ended and publish its event, then report its outcome to the case."""
        live = self._manager.live.get(case)
        if live is not None and (known := live.states.get(serial)) is not None:
            name, kind, state = known
            # the job itself is submitted now; or it is not, and the case tells that the item has failed
            staged = kind == "job" and state == "staging"
            live.move(serial, name, kind, "" if staged else "completed" if outcome.ok else "failed")
            if kind == "call" and outcome.fault is not None and self._began_no_case(case, serial, outcome.fault):
                self._note_failed_call(live, serial, name, outcome.fault)
        await self._manager.finish(case, serial, outcome)

    def _began_no_case(self, case: CaseId, serial: int, fault: Fault) -> bool:
        return fault.name == NOT_CALLED or (case, serial) in self._calls.unsent

    def _note_failed_call(self, live: LiveCase, serial: int, name: str, fault: Fault) -> None:
        """Write an item document for a call that started no case: nothing else records it."""
        self._calls.unsent.discard((live.id, serial))
        instance = item_of(live.case, serial)
        if instance is None:
            return
        item, id, at = instance.item, f"{live.id}/{instance.item}", self._clock.now()
        noted = ItemDocument(
            case=live.id, item=item, name=name, kind="call", serial=serial, state="failed", place=live.place
        )
        noted.created_at, noted.ended_at, noted.fault = at, at, fault
        noted.element = element_of(live.case, serial)
        live.noted.add(id)
        self._ledger.touch(ITEM_KIND, id, noted)

    async def fired(self, case: CaseId, serial: int) -> None:
        """A timer has fired."""
        live, go = self._manager.live.get(case), partial(self._manager.fire, case, serial)
        if live is not None and live.away is not None:  # no other timer waits for a step that is done aside
            self._background.start(self._manager.later(case, partial(self.fired, case, serial)))
            return
        watched = live is not None and ExceptionType.TIMEOUT in self._interception_points.points(live)
        if live is None or not watched or not self._interception_points.before_timeout(live, serial, go):
            await go()

    # Jobs

    async def _submit(self, live: LiveCase, order: SubmitJob, reissued: bool) -> None:
        case, spec = live.id, live.owned(order.spec, element_of(live.case, order.serial))
        found = await self._results.look_up(live, order.serial, spec, reissued=reissued)
        job = NewJob(JobId(f"{case}/{order.serial}"), case, spec, found.reason, key=found.key)
        if found.outcome is not None:
            self._results.take_over(live, job, found.outcome)
            self._background.start(self.job_finished(live.id, order.serial, found.outcome))
            return
        await self._submitter.submit(job, reissued=reissued)

    async def _cancel_job(self, live: LiveCase, order: CancelJob, reissued: bool) -> None:
        await self._meta.cancel(JobId(f"{live.id}/{order.serial}"), reason=order.reason)

    async def _suspend_job(self, live: LiveCase, order: SuspendJob, reissued: bool) -> None:
        await self._meta.suspend(JobId(f"{live.id}/{order.serial}"))

    async def _resume_job(self, live: LiveCase, order: ResumeJob, reissued: bool) -> None:
        await self._meta.resume(JobId(f"{live.id}/{order.serial}"))

    # Files, people, time

    async def _stage(self, live: LiveCase, order: StageFiles, reissued: bool) -> None:
        item = find_item(live.case, order.item)
        live.move(order.serial, item_name(order.item), item.kind if item else "stage", "staging")
        self._staging.start(live.id, order, live.flow.folder, live.document.project)

    async def _offer(self, live: LiveCase, order: OfferTask, reissued: bool) -> None:
        live.move(order.serial, item_name(order.item), "user-task", "waiting")
        earlier = None if reissued else self._grounds.case_to_ask(live, order.serial)
        element, project = element_of(live.case, order.serial), live.document.project
        outcome = await self._tasks.offer(
            live.id, order, element, project, reissued=reissued, earlier=earlier, grounds=self._grounds.of(live)
        )
        if outcome is not None:
            self._background.start(self.finished(live.id, order.serial, outcome))

    async def _withdraw(self, live: LiveCase, order: WithdrawTask, reissued: bool) -> None:
        ended = await self._tasks.withdraw(live.id, order.serial, order.reason)
        if (known := live.states.get(order.serial)) is not None:
            live.move(order.serial, known[0], known[1], "failed" if ended == "expired" else "cancelled")

    async def _set_timer(self, live: LiveCase, order: SetTimer, reissued: bool) -> None:
        self._timers.set(live.id, order.serial, order.at)

    async def _drop_timer(self, live: LiveCase, order: DropTimer, reissued: bool) -> None:
        self._timers.drop(live.id, order.serial)

    async def _begin_case(self, live: LiveCase, order: ContinueLater, reissued: bool) -> None:
        go = partial(self._manager.proceed, live.id, order.serial)
        if not self._interception_points.beginning(live, go):
            self._background.start(go())

    async def _run_primitive(self, live: LiveCase, order: RunPrimitive, reissued: bool) -> None:
        recovery = self._hub.provider(RecoveryHooks)
        assert recovery is not None, "only exlets have primitives, and only the exception service starts exlets"
        self._background.start(recovery.do(live, order, reissued))

    # Other cases and partners

    async def _call_partner(self, live: LiveCase, order: CallPartner, reissued: bool) -> None:
        if order.port_type:
            self._partners().call(live, order)
            return
        message = f"there is no partner {order.partner!r} on this server, so {order.operation!r} cannot be called"
        fault = Fault(name="partnerUnknown", category=Category.REFUSED, message=message)
        if not order.wants_answer:
            self._notices.post(message, case=live.id, item=order.item)
        self._background.start(self._manager.finish(live.id, order.serial, Outcome(fault=fault)))

    async def _transform(self, live: LiveCase, order: RunStyleSheet, reissued: bool) -> None:
        self._style_sheets().begin(live, order)

    async def _send_reply(self, live: LiveCase, order: SendReply, reissued: bool) -> None:
        self._events.tell(self._clock.now(), "message", live.id, state="reply", message=order.channel)
        if not self._board().take_reply(live, order) and not reissued:
            self._ledger.touch(REPLY_KIND, f"{live.id}/{order.serial}", order, last=True)
        self._background.start(self._manager.finish(live.id, order.serial, Outcome()))

    def _register_listeners(self, live: LiveCase, orders: Sequence[Order]) -> Sequence[Order]:
        """Register the case's listeners before anything is awaited, so that a message that comes meanwhile finds them.
        Returns the other orders."""
        board = self._board()
        for order in orders:
            if isinstance(order, ListenerAdded):
                board.case_listens(live, order.channel)
        return [order for order in orders if not isinstance(order, ListenerAdded)]

    # The end

    async def _end(self, live: LiveCase, order: EndCase, reissued: bool) -> None:
        go = partial(self._publish_end, live, order)
        if not live.document.live or not self._interception_points.ending(live, order, go):
            await go()

    async def _publish_end(self, live: LiveCase, order: EndCase) -> None:
        document = live.document
        if document.status in LIVE_STATUSES:
            document.status, document.ended_at = order.status, live.case.ended_at
            document.outputs = order.outputs
            document.fault = order.fault
            document.counts = live.tally.counts()
            document.to_come = 0 if order.status == "completed" else live.to_come
            document.serials = live.case.last_serial
            self._apply_end_amendments(live)
            self._hub.publish(CaseEnded(document))
            self._manager.count_ended(document, document.status)
            message = document.fault.message if document.fault else ""
            self._events.tell(document.ended_at, "case", live.id, state=document.status, message=message)
            self._events.ended(live.id)
            if document.parent is not None and document.parent_serial:  # otherwise nobody there waits for it
                self._background.start(self.finished(document.parent, document.parent_serial, outcome_of(document)))
            self._interception_points.forget(live)
            if (recovery := self._hub.provider(RecoveryHooks)) is not None:
                self._background.start(recovery.case_over(live))
        self._manager.close(live)

    def _apply_end_amendments(self, live: LiveCase) -> None:
        """Apply what exlets changed between the end of the case and its publication."""
        document = live.document
        if (ending := document.ending) is None:
            return
        document.outputs = {**document.outputs, **ending.outputs}
        if ending.removed:
            document.status = "cancelled"
            document.fault = Fault(name="cancelled", category=Category.CANCELLED, message=ending.removed)
