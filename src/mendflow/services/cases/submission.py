"""The four ways to submit a job to the meta-scheduler, through its contract alone.

Wait: one call that returns when the job is over. Poll: submit, then ask until it is over. Notify: submit, then get a
callback. Forget: submit and let the flow continue; the end of the job is reported to the administrator, not to the
flow."""

from collections.abc import Callable, Coroutine, Sequence

from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import JobState, Outcome, Submission
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import Callback, Clock, MetaScheduler, NewJob, SubmissionFailed, never_arrived
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices

Finished = Callable[[CaseId, int, Outcome], Coroutine[None, None, None]]
POLL_MS = 200


class Submitter:
    def __init__(self, meta: MetaScheduler, ledger: Ledger, clock: Clock, notices: Notices, finished: Finished) -> None:
        self._meta = meta
        self._clock = clock
        self._notices = notices
        self._finished = finished
        self._background = BackgroundTasks(ledger)
        self._patterns: dict[Submission, Callable[[NewJob, bool], Coroutine[None, None, None]]] = {
            Submission.NOTIFY: self._notify,
            Submission.FORGET: self._forget,
            Submission.WAIT: self._wait,
            Submission.POLL: self._poll,
        }

    async def stop(self) -> None:
        await self._background.stop()

    async def submit(self, job: NewJob, *, reissued: bool) -> None:
        try:
            await self._patterns[job.spec.submission](job, reissued)
        except SubmissionFailed as failed:
            self._refuse(job, failed.fault)

    async def submit_all(self, jobs: Sequence[NewJob]) -> None:
        """Submit jobs whose flow is notified of their ends, with one call."""
        if len(jobs) == 1:
            await self.submit(jobs[0], reissued=False)
        if len(jobs) < 2:
            return
        try:
            await self._meta.submit(jobs)
        except SubmissionFailed as failed:
            for job in jobs:
                self._refuse(job, failed.fault)
            return
        report = self._report
        for job in jobs:
            try:
                await self._meta.subscribe(job.id, report)
            except NotFound as error:
                self._refuse(job, never_arrived(error).fault)
            except SubmissionFailed as failed:
                self._refuse(job, failed.fault)

    def _refuse(self, job: NewJob, fault: Fault) -> None:
        """Tell the flow a moment later that the job was not accepted."""
        self._background.start(self._report(job.id, Outcome(fault=fault)))

    async def _notify(self, job: NewJob, reissued: bool) -> None:
        await self._meta.submit([job], reissued=reissued)
        await self._subscribe(job.id, self._report)

    async def _forget(self, job: NewJob, reissued: bool) -> None:
        await self._meta.submit([job], reissued=reissued)
        await self._subscribe(job.id, self._report_forgotten)

    async def _subscribe(self, id: JobId, callback: Callback) -> None:
        """Subscribe to the end of a job that was just submitted. Nobody knows it if its flow has gone on without it
        while it was submitted, or mended: its flow hears that it never arrived, if it still waits for it."""
        try:
            await self._meta.subscribe(id, callback)
        except NotFound as error:
            raise never_arrived(error) from error

    async def _wait(self, job: NewJob, reissued: bool) -> None:
        self._background.start(self._run(job, reissued))

    async def _poll(self, job: NewJob, reissued: bool) -> None:
        await self._meta.submit([job], reissued=reissued)
        self._background.start(self._poll_until_ended(job))

    async def _run(self, job: NewJob, reissued: bool) -> None:
        try:
            outcome = await self._meta.run(job, reissued=reissued)
        except SubmissionFailed as failed:
            outcome = Outcome(fault=failed.fault)
        except NotFound as error:
            outcome = Outcome(fault=never_arrived(error).fault)
        await self._report(job.id, outcome)

    async def _poll_until_ended(self, job: NewJob) -> None:
        while True:
            try:
                status = await self._meta.status(job.id)
            except SubmissionFailed as failed:
                await self._report(job.id, Outcome(fault=failed.fault))
                return
            except NotFound as error:
                await self._report(job.id, Outcome(fault=never_arrived(error).fault))
                return
            if status.state in (JobState.COMPLETED, JobState.FAILED) and status.outcome is not None:
                await self._report(job.id, status.outcome)
                return
            await self._clock.sleep(POLL_MS)

    def _report(self, id: JobId, outcome: Outcome) -> Coroutine[None, None, None]:
        case, _, serial = id.rpartition("/")
        return self._finished(CaseId(case), int(serial), outcome)

    async def _report_forgotten(self, id: JobId, outcome: Outcome) -> None:
        if outcome.fault is not None:
            case = CaseId(id.rpartition("/")[0])
            self._notices.post(f"job {id}, which nobody waits for, failed: {outcome.fault.message}", case=case)
        await self._report(id, outcome)
