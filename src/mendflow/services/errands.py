"""Carrying out what cases order: a table from the kind of order to who does it.

Every order may come twice, and is then done once. What comes back at once (a job that was over already, a reused
result) is told to the case a moment later, never from within: so orders of one event are all given before the next
event, and a long chain of reused jobs is a loop and not a recursion."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import msgspec

from mendflow.core.engine import Stale, find_item
from mendflow.core.engine.messages import (
    CallPartner,
    Cancel,
    CancelCalled,
    CancelJob,
    DropTimer,
    EndCase,
    GoOn,
    ItemFailed,
    ItemSkipped,
    OfferTask,
    Order,
    Proceed,
    ResumeJob,
    SendReply,
    SetTimer,
    StageFiles,
    StartCalled,
    SubmitJob,
    SuspendJob,
    WithdrawTask,
)
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.problems import Mistake, NotFound
from mendflow.core.model.views import ItemState
from mendflow.services.case_book import (
    CASE_KIND,
    ITEM_KIND,
    LIVE_STATUSES,
    CaseDocument,
    ItemDocument,
    LiveCase,
    name_of,
)
from mendflow.services.contracts import Clock, MetaScheduler, NewJob
from mendflow.services.flow_manager import FlowManager
from mendflow.services.flows import Flows
from mendflow.services.happenings import Happenings
from mendflow.services.ledger import Ledger
from mendflow.services.notices import Notices
from mendflow.services.reuse import Reuse
from mendflow.services.staging import Staging
from mendflow.services.submission import Submitter
from mendflow.services.tasks import Tasks
from mendflow.services.timers import Timers
from mendflow.stores.contract import Store

REPLY_KIND = "reply"
Handler = Callable[[LiveCase, Any, bool], Awaitable[None]]


class OrderDesk:
    def __init__(
        self,
        *,
        manager: FlowManager,
        flows: Flows,
        meta: MetaScheduler,
        submitter: Submitter,
        reuse: Reuse,
        tasks: Tasks,
        staging: Staging,
        timers: Timers,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        happenings: Happenings,
        notices: Notices,
    ) -> None:
        self._manager = manager
        self._flows = flows
        self._meta = meta
        self._submitter = submitter
        self._reuse = reuse
        self._tasks = tasks
        self._staging = staging
        self._timers = timers
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._happenings = happenings
        self._notices = notices
        self._soon: set[asyncio.Task[None]] = set()
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
            StartCalled: self._start_called,
            CancelCalled: self._cancel_called,
            CallPartner: self._call_partner,
            SendReply: self._send_reply,
            GoOn: self._go_on,
            ItemSkipped: self._skipped,
            ItemFailed: self._failed_early,
            EndCase: self._end,
        }

    async def stop(self) -> None:
        for task in self._soon:
            task.cancel()
        await asyncio.gather(*self._soon, return_exceptions=True)

    async def carry_out(self, live: LiveCase, orders: Sequence[Order], *, again: bool = False) -> None:
        handlers = self._handlers
        for order in orders:
            await handlers[type(order)](live, order, again)

    async def finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        """A task, a staging or a called case is over: close its line in the books, then tell the case."""
        live = self._manager.live.get(case)
        if live is not None and (known := live.states.get(serial)) is not None:
            name, kind, state = known
            staged = kind == "job" and state == "staging" and outcome.ok  # the job itself comes now
            live.move(serial, name, kind, "" if staged else "completed" if outcome.ok else "failed")
        await self._manager.finish(case, serial, outcome)

    # Jobs

    async def _submit(self, live: LiveCase, order: SubmitJob, again: bool) -> None:
        job = NewJob(JobId(f"{live.id}/{order.serial}"), live.id, order.spec)
        if live.document.rerun_of is not None and not again:
            outcome = await self._reuse.take_over(live, job)
            if outcome is not None:
                self._later(self._manager.finish(live.id, order.serial, outcome))
                return
            job = NewJob(job.id, job.case, job.spec, live.reasons.pop(order.spec.item, ""))
        await self._submitter.submit(job, again=again)

    async def _cancel_job(self, live: LiveCase, order: CancelJob, again: bool) -> None:
        await self._meta.cancel(JobId(f"{live.id}/{order.serial}"))

    async def _suspend_job(self, live: LiveCase, order: SuspendJob, again: bool) -> None:
        await self._meta.suspend(JobId(f"{live.id}/{order.serial}"))

    async def _resume_job(self, live: LiveCase, order: ResumeJob, again: bool) -> None:
        await self._meta.resume(JobId(f"{live.id}/{order.serial}"))

    # Files, people, time

    async def _stage(self, live: LiveCase, order: StageFiles, again: bool) -> None:
        item = find_item(live.case, order.item)
        live.move(order.serial, name_of(order.item), item.kind if item else "stage", "staging")
        self._staging.start(live.id, order, live.flow.folder)

    async def _offer(self, live: LiveCase, order: OfferTask, again: bool) -> None:
        live.move(order.serial, name_of(order.item), "task", "waiting")
        outcome = await self._tasks.offer(live.id, order, again=again)
        if outcome is not None:
            self._later(self.finished(live.id, order.serial, outcome))

    async def _withdraw(self, live: LiveCase, order: WithdrawTask, again: bool) -> None:
        if (known := live.states.get(order.serial)) is not None:
            live.move(order.serial, known[0], known[1], "cancelled")
        await self._tasks.withdraw(live.id, order.serial)

    async def _set_timer(self, live: LiveCase, order: SetTimer, again: bool) -> None:
        self._timers.set(live.id, order.serial, order.at)

    async def _drop_timer(self, live: LiveCase, order: DropTimer, again: bool) -> None:
        self._timers.drop(live.id, order.serial)

    async def _go_on(self, live: LiveCase, order: GoOn, again: bool) -> None:
        self._later(self._proceed(live.id, order.serial))

    async def _proceed(self, case: CaseId, serial: int) -> None:
        try:
            await self._manager.command(case, Proceed(serial=serial))
        except (Stale, NotFound):
            pass  # the case has gone on without it

    # Other cases and partners

    async def _start_called(self, live: LiveCase, order: StartCalled, again: bool) -> None:
        id = CaseId(f"{live.id}.{order.serial}")
        live.move(order.serial, name_of(order.item), "call", "running")
        if again and (kept := await self._store.get(CASE_KIND, id)) is not None:
            document = msgspec.json.decode(kept.body, type=CaseDocument)
            if document.status not in LIVE_STATUSES:
                self._later(self.finished(live.id, order.serial, _outcome(document)))
            return
        try:
            flow, digest = (
                (order.flow, self._flows.digest(order.flow)) if order.flow else await self._flows.find(order.name)
            )
            document = CaseDocument(
                id=id,
                flow=flow.name,
                digest=digest,
                inputs=order.inputs,
                parent=live.id,
                parent_serial=order.serial,
                owner=live.document.owner,
            )
            self._later(self._begin_called(live, order, document, flow))
        except Mistake as mistake:
            self._later(self._call_failed(live.id, order, mistake))

    async def _begin_called(self, live: LiveCase, order: StartCalled, document: CaseDocument, flow: Any) -> None:
        try:
            if live.id in self._manager.live:
                await self._manager.begin(document, flow, {})
        except Mistake as mistake:
            await self._call_failed(live.id, order, mistake)

    async def _call_failed(self, case: CaseId, order: StartCalled, mistake: Mistake) -> None:
        fault = Fault(name="callFailed", category=Category.INPUT, message=mistake.message)
        await self.finished(case, order.serial, Outcome(fault=fault))

    async def _cancel_called(self, live: LiveCase, order: CancelCalled, again: bool) -> None:
        if (known := live.states.get(order.serial)) is not None:
            live.move(order.serial, known[0], known[1], "cancelled")
        self._later(self._cancel_case(CaseId(f"{live.id}.{order.serial}")))

    async def _cancel_case(self, case: CaseId) -> None:
        try:
            await self._manager.command(case, Cancel(reason="the case that called it went on without it"))
        except (Mistake, Stale):
            pass  # it is over already

    async def _call_partner(self, live: LiveCase, order: CallPartner, again: bool) -> None:
        message = f"there is no partner {order.partner!r} on this server, so {order.operation!r} cannot be called"
        fault = Fault(name="partnerUnknown", category=Category.REFUSED, message=message)
        if not order.wants_answer:
            self._notices.post(message, case=live.id, item=order.item)
        self._later(self._manager.finish(live.id, order.serial, Outcome(fault=fault)))

    async def _send_reply(self, live: LiveCase, order: SendReply, again: bool) -> None:
        self._happenings.tell(self._clock.now(), "notice", live.id, state="reply", message=order.channel)
        if not again:
            self._ledger.touch(REPLY_KIND, f"{live.id}/{order.serial}", order, last=True)
        self._later(self._manager.finish(live.id, order.serial, Outcome()))

    # Ends

    async def _skipped(self, live: LiveCase, order: ItemSkipped, again: bool) -> None:
        self._note(live, order, "skipped", reason=order.reason)

    async def _failed_early(self, live: LiveCase, order: ItemFailed, again: bool) -> None:
        self._note(live, order, "failed", fault=order.fault)

    def _note(
        self,
        live: LiveCase,
        order: ItemSkipped | ItemFailed,
        state: ItemState,
        *,
        reason: str = "",
        fault: Fault | None = None,
    ) -> None:
        """Something that never came to anybody: people are told of it all the same."""
        now = self._clock.now()
        name = name_of(order.item)
        live.tally.move(name, order.kind, "", state)
        noted = ItemDocument(
            case=live.id,
            item=order.item,
            name=name,
            kind=order.kind,
            serial=0,
            state=state,
            created_at=now,
            ended_at=now,
            reason=reason,
            fault=fault,
        )
        live.noted.add(f"{live.id}/{order.item}")
        self._ledger.touch(ITEM_KIND, f"{live.id}/{order.item}", noted)
        message = fault.message if fault else reason
        self._happenings.tell(now, "item", live.id, ItemId(order.item), state=state, message=message)

    async def _end(self, live: LiveCase, order: EndCase, again: bool) -> None:
        document = live.document
        if document.status in LIVE_STATUSES:
            document.status = order.status
            document.ended_at = live.case.ended_at
            document.outputs = order.outputs
            document.fault = order.fault
            document.counts = live.tally.counts()
            message = order.fault.message if order.fault else ""
            self._happenings.tell(document.ended_at, "case", live.id, state=order.status, message=message)
            self._happenings.ended(live.id)
            if document.parent is not None:
                self._later(self.finished(document.parent, document.parent_serial, _outcome(document)))
        self._manager.close(live)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._soon.add(task)
        task.add_done_callback(self._soon.discard)


def _outcome(document: CaseDocument) -> Outcome:
    """What a called case leaves to its caller."""
    if document.status == "completed":
        return Outcome(outputs=document.outputs)
    if document.fault is not None:
        return Outcome(fault=document.fault)
    words = f"the called case {document.id} was {document.status}"
    return Outcome(fault=Fault(name="cancelled", category=Category.CANCELLED, message=words))
