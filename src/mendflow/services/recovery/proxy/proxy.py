"""The proxy: a meta-scheduler for the flow manager, and mendable jobs for the primitives of exlets.

It sees every call and every end. What goes well passes through: an entry in a dict while the job is under way, and
nothing else. A failure is reported to the provider of `Repairs` first; if it is mended the flow is not told, and when
the job is submitted again under another id, everything that the flow asks of the id that it knows is asked of the
newest submission. Neither side notices: the flow manager sees the contract of a meta-scheduler, and each meta-scheduler
sees ordinary jobs."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome
from mendflow.core.recovery.conversation import Conversation, ConversationMessage, HeldFailure
from mendflow.core.recovery.decision_subject import DecisionSubject
from mendflow.core.recovery.ids import flow_job_id
from mendflow.core.recovery.patterns import NO_PATTERNS, Patterns
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import (
    Callback,
    CapacityReport,
    Change,
    Clock,
    MetaScheduler,
    NewJob,
    Status,
    SubmissionFailed,
)
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.recovery.proxy.conversations import ConversationStore
from mendflow.services.recovery.proxy.resubmission import Recovery
from mendflow.services.recovery.proxy.watched_job import TrackedJob
from mendflow.stores.contract import Store


class Proxy:
    """`inner` are the meta-schedulers by the names of their domains; the one without a name is our own queue. Where
    nobody provides repairs the proxy passes everything on."""

    def __init__(
        self,
        *,
        inner: Mapping[str, MetaScheduler],
        store: Store,
        ledger: Ledger,
        clock: Clock,
        hub: Hub,
        patterns: Patterns = NO_PATTERNS,
    ) -> None:
        self.inner = inner
        self._queue = inner[""]
        self._ledger = ledger
        self._tracked: dict[JobId, TrackedJob] = {}
        self._conversations = ConversationStore(store, ledger)
        self._failed_jobs = self._conversations.open
        self._background = BackgroundTasks(ledger)
        self._listener = self._on_outcome
        self.recovery = Recovery(
            inner=inner,
            ledger=ledger,
            clock=clock,
            conversations=self._conversations,
            watched=self._tracked,
            patterns=patterns,
            hub=hub,
            on_outcome=self._listener,
        )

    def use_patterns(self, patterns: Patterns) -> None:
        """Recognise conversations by these patterns from now on."""
        self.recovery.use_patterns(patterns)

    async def stop(self) -> None:
        await self._background.stop()

    # The contract of a meta-scheduler

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        watched = self._tracked
        for new in jobs:
            if new.id not in watched:
                watched[new.id] = TrackedJob(new)
        if reissued:
            jobs = [new for new in jobs if not await self._take_up(new)]
        if jobs:
            try:
                await self._queue.submit(jobs, reissued=reissued)
            except SubmissionFailed as failed:
                await self._submission_failed([new for new in jobs if new.id in watched], failed)
            for new in jobs:
                if new.id not in watched:
                    await self._queue.cancel(new.id)  # the flow went on without it while it was being submitted

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        """The call waits here, not in the meta-scheduler: the job that ends may be a later submission."""
        over: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        async def tell(_: JobId, outcome: Outcome) -> None:
            if not over.done():
                over.set_result(outcome)

        watched = self._tracked[job.id] = TrackedJob(job)
        watched.waiter = over
        await self.submit([job], reissued=reissued)
        await self.subscribe(job.id, tell)
        return await over

    async def status(self, id: JobId) -> Status:
        watched = self._tracked.get(id)
        if watched is None:
            return await self._last_status(id)
        watched.was_polled = True
        talk = self._conversations.get(id)
        domain, real = _newest(id, talk)
        if watched.outcome is not None or watched.failing == real or (talk is not None and talk.held is not None):
            return self._held_status(watched)
        try:
            found = await self.recovery.scheduler_of(domain).status(real)
        except SubmissionFailed as failed:
            await self.recovery.failed(watched, real, Outcome(fault=failed.fault), stage="polling")
            return self._held_status(watched)
        except NotFound:
            if talk is None:
                raise
            return self._held_status(watched)  # its newest submission is on its way there
        if found.outcome is not None and found.outcome.fault is not None:
            await self._on_trouble(real, found.outcome)
            return self._held_status(watched)
        if found.outcome is not None and watched.callback is None:
            self._forget(id)
        return _under_known_id(found, id, talk)

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        watched = self._tracked.get(id)
        if watched is None:
            await self._queue.subscribe(id, callback)
            return
        watched.callback = callback
        if watched.outcome is not None:
            self._background.start(self.recovery.report_outcome(watched, watched.outcome))
            return
        talk = self._failed_jobs.get(id)
        try:
            if talk is None:
                await self._queue.subscribe(id, self._listener)
            elif talk.held is None:
                await self.recovery.scheduler_of(talk.domain).subscribe(talk.newest, self._listener)
        except SubmissionFailed as failed:
            _, real = _newest(id, talk)
            await self.recovery.failed(watched, real, Outcome(fault=failed.fault), stage="notification")

    async def suspend(self, id: JobId) -> None:
        talk = self._note_suspension(id, suspended=True)
        if talk is None or talk.held is None:
            domain, real = _newest(id, talk)
            await self.recovery.scheduler_of(domain).suspend(real)

    async def resume(self, id: JobId) -> None:
        talk = self._note_suspension(id, suspended=False)
        if talk is None or talk.held is None:
            domain, real = _newest(id, talk)
            await self.recovery.scheduler_of(domain).resume(real)

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        watched = self._tracked.get(id)
        domain, real = _newest(id, self._forget(id))
        if watched is not None and watched.waiter is not None:
            watched.waiter.cancel()  # the call will not return: whoever cancels no longer waits
        await self.recovery.scheduler_of(domain).cancel(real, reason=reason)

    async def capacity(self) -> CapacityReport:
        return await self._queue.capacity()

    # Called by the meta-scheduler

    async def attempt_failed(self, job: Job, outcome: Outcome) -> bool:
        """Whether a job whose attempt failed is being mended, so that the queue need not retry it."""
        known = flow_job_id(job.id)
        watched, talk = self._tracked.get(known), self._conversations.get(known)
        if watched is None:
            return False
        if talk is not None and not talk.awaits(job.id):
            return True  # it was mended before the queue could record that it ended
        return await self.recovery.attempt_failed(watched, job, outcome)

    # Mendable jobs

    async def resubmit(self, id: JobId, change: Change, *, key: str, decided: DecisionSubject | None = None) -> None:
        await self.recovery.resubmit(id, change, key, decided)

    async def repoll(self, id: JobId, *, key: str) -> None:
        await self.recovery.ask_again(id, ConversationMessage.REPOLL, key)

    async def reregister(self, id: JobId, *, key: str) -> None:
        await self.recovery.ask_again(id, ConversationMessage.REREGISTER, key)

    async def pass_on(self, id: JobId, *, decided: DecisionSubject | None = None) -> None:
        await self.recovery.pass_on(id, decided)

    async def ended_well(self, id: JobId) -> bool | None:
        if id in self._tracked:
            return None
        try:
            outcome = (await self._last_status(id)).outcome
        except NotFound:
            return None
        return outcome.ok if outcome is not None else None

    def newest_spec(self, id: JobId) -> JobSpec | None:
        """The job as it was submitted last; None if the flow does not wait for such a job."""
        watched = self._tracked.get(id)
        return self.recovery.newest_spec(watched) if watched is not None else None

    def phase_of(self, id: JobId) -> str:
        """`held` while a failure of it is kept from the flow, `running` while it is under way; empty if the flow does
        not wait for such a job."""
        watched, talk = self._tracked.get(id), self._conversations.get(id)
        if watched is None:
            return ""
        return "held" if watched.outcome is None and talk is not None and talk.held is not None else "running"

    def conversation(self, id: JobId) -> Conversation | None:
        """The conversation of a failed job that is under way."""
        return self._conversations.get(id)

    # Outcomes

    async def _on_outcome(self, real: JobId, outcome: Outcome) -> None:
        watched = self._tracked.get(real)
        if watched is None or outcome.fault is not None or real in self._failed_jobs:
            await self._on_trouble(real, outcome)
            return
        if watched.callback is None:
            watched.outcome = outcome
            return
        del self._tracked[real]
        await watched.callback(real, outcome)

    async def _on_trouble(self, real: JobId, outcome: Outcome) -> None:
        """Something failed, or a job ended that had failed before. Reports of an older submission are ignored, and so
        is a failure that is held already."""
        known = flow_job_id(real)
        watched, talk = self._tracked.get(known), self._conversations.get(known)
        if watched is None or watched.outcome is not None or watched.failing == real:
            return
        if talk is not None and not talk.awaits(real):
            return
        if outcome.fault is None:
            await self.recovery.report_outcome(watched, outcome)
        else:
            await self.recovery.failed(watched, real, outcome, stage="execution")

    async def _submission_failed(self, jobs: Sequence[NewJob], failed: SubmissionFailed) -> None:
        """These jobs were not accepted. If that is not mended either, the caller gets the error as without a proxy;
        where only some are mended, the failures of the others are reported when they are asked for."""
        outcome = Outcome(fault=failed.fault)
        mended = [
            await self.recovery.failed(self._tracked[new.id], new.id, outcome, stage="submission") for new in jobs
        ]
        if not any(mended):
            for new in jobs:
                self._forget(new.id)
            raise failed

    async def _take_up(self, new: NewJob) -> bool:
        """After a crash: whether the job has a conversation, from which it continues."""
        talk = await self._conversations.take_up(CaseId(new.case), new.id)
        if talk is None:
            return False
        await self.recovery.take_up(self._tracked[new.id], talk)
        return True

    async def _last_status(self, id: JobId) -> Status:
        """The status of a job that nobody waits for any more. If it had failed, its newest submission says how it
        ended."""
        talk = await self._conversations.look_up(id)
        if talk is None:
            return await self._queue.status(id)
        try:
            return _under_known_id(await self.recovery.scheduler_of(talk.domain).status(talk.newest), id, talk)
        except NotFound:
            if talk.held is not None:
                return _ended_status(id, talk, talk.held.outcome)
            return Status(job=id, state=JobState.AVAILABLE, attempts=talk.attempts, reason="it is submitted again")

    async def attempts(self, id: JobId) -> int:
        """How many attempts a job had, in all its submissions; 0 if there is no such job. Changes nothing."""
        talk = await self._conversations.look_up(id)
        if talk is not None and talk.domain:
            return talk.attempts + 1  # another domain is not asked for a number
        try:
            return (await self._last_status(id)).attempts
        except NotFound:
            return 0

    def _held_status(self, watched: TrackedJob) -> Status:
        """What a poller gets for a job that ended, or whose failure is being mended."""
        id, outcome, talk = watched.new.id, watched.outcome, self._conversations.get(watched.new.id)
        if outcome is not None:
            self._forget(id)
            return _ended_status(id, talk, outcome)
        held = talk.held if talk is not None else None
        message = held.outcome.fault.message if held is not None and held.outcome.fault is not None else "it failed"
        attempts = talk.attempts if talk is not None else 0
        return Status(job=id, state=JobState.AVAILABLE, attempts=attempts, reason=f"it is being mended: {message}")

    def _note_suspension(self, id: JobId, *, suspended: bool) -> Conversation | None:
        """Remember that a job is suspended that is about to be submitted again."""
        talk = self._conversations.get(id)
        if talk is not None and talk.suspended != suspended:
            talk = replace(talk, suspended=suspended)
            self._conversations.keep(talk)
        return talk

    def _forget(self, id: JobId) -> Conversation | None:
        """Nobody waits for this job any more."""
        self._tracked.pop(id, None)
        return self._conversations.close(id)


def _newest(id: JobId, talk: Conversation | None) -> tuple[str, JobId]:
    """The domain and the id of the newest submission."""
    return (talk.domain, talk.newest) if talk is not None else ("", id)


def _under_known_id(found: Status, id: JobId, talk: Conversation | None) -> Status:
    if talk is None:
        return found
    return replace(found, job=id, attempts=talk.earlier_attempts + found.attempts)


def _ended_status(id: JobId, talk: Conversation | None, outcome: Outcome) -> Status:
    state = JobState.COMPLETED if outcome.ok else JobState.FAILED
    held = talk.held if talk is not None else None
    where = held if held is not None else HeldFailure(outcome=outcome, stage="")
    attempts = talk.attempts if talk is not None else 0
    return Status(
        job=id,
        state=state,
        attempts=attempts,
        outcome=outcome,
        reason=state.value,
        pilot=where.pilot,
        host=where.host,
        site=where.site,
    )
