"""How attempts end: by a report of their pilot, which is judged and counted once, or because they were lost or given
back. A failure that would be retried goes to the exception service first."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.ids import CaseId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobState, Outcome
from mendflow.core.model.sync import AttemptReport
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.core.scheduling.reported_outcomes import accepted_outcome, unprocessed_outcome
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hidden_texts import HiddenTexts
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.scheduling.facts import FailedAttempts, JobRequeued
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.unprocessed_reports import UnprocessedReports
from mendflow.stores.contract import Store

REFUSED_REMEMBERED_MAX = 10_000
"""Refused reports: of how many jobs and pilots it is remembered that somebody was told."""
DAMAGED_MAX = 8
DAMAGED_REMEMBERED_MAX = 10_000
"""Damaged replicas: how many are reported for one job, and how many are remembered as reported."""
CHANGED_REMEMBERED_MAX = 10_000
"""Inputs that jobs have changed: how many are remembered as reported."""

_decode = msgspec.json.Decoder(Job).decode


class AttemptEnds:
    """`unprocessed` has the reports that raised an internal error, `hidden` what no log may show. `in_recovery` are the
    jobs for which the exception service is being asked whether to retry them."""

    def __init__(
        self,
        *,
        meta: PilotScheduler,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        notices: Notices,
        unprocessed: UnprocessedReports,
        hidden: HiddenTexts,
    ) -> None:
        self._meta = meta
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._notices = notices
        self._unprocessed = unprocessed
        self._hidden = hidden
        self._refused: dict[tuple[JobId, PilotId], None] = {}
        self._damaged: dict[str, None] = {}
        self._changed: dict[tuple[CaseId, str, str], None] = {}
        self.in_recovery: set[JobId] = set()

    async def take_report(self, pilot: PilotRecord, report: AttemptReport) -> bool | None:
        job = self._meta.jobs.get(report.job)
        if job is None:
            return await self.was_accepted(pilot, report)
        now, policy, project = self._clock.now(), self._meta.policy, job.spec.project
        told = self._hidden.of(project).mask_texts(report.outcome)  # a secret at which a text is cut would not be found
        outcome = accepted_outcome(job.spec, told)
        if error := self._unprocessed.error_of(report.job, report.fence):
            outcome = unprocessed_outcome(outcome, error)
        outcome = self._hidden.mask_outcome(outcome, project)
        verdict = job_lifecycle.report(job, pilot.id, report.fence, outcome, now=now, policy=policy)
        if not verdict.accepted:
            self._meta.counts.reports_refused += 1
            self._report_refused(job, pilot, verdict.reason)
        elif error:
            self._notices.post(f"job {job.id} has failed: {verdict.reason}", case=job.case, item=job.spec.item)
        if verdict.events:
            self._meta.counts.report_accepted(job, outcome.measures, now=now, sent_at=pilot.sent_at)
            if outcome.measures.damaged:
                self._report_damage(job, outcome)
            if outcome.measures.changed_inputs:
                self._report_changed_inputs(job, outcome)
            await self.end(job, verdict.events, outcome)
            pilot.note_accepted(report.job, report.fence)
        return verdict.accepted

    def _report_refused(self, job: Job, pilot: PilotRecord, reason: str) -> None:
        """Reported once for each pilot, however often it reports. Of pilots of other projects nothing is said in the
        job's: they have to do with none of its jobs."""
        known = (job.id, pilot.id)
        if known in self._refused or (pilot.projects is not None and job.spec.project not in pilot.projects):
            return
        self._refused[known] = None
        self._notices.post(reason, case=job.case, item=job.spec.item)
        while len(self._refused) > REFUSED_REMEMBERED_MAX:
            del self._refused[next(iter(self._refused))]

    def _report_damage(self, job: Job, outcome: Outcome) -> None:
        """The job got its files from elsewhere; but the next one would hit the same damaged replica. Reported once for
        each."""
        for replica in outcome.measures.damaged[:DAMAGED_MAX]:
            if replica not in self._damaged:
                self._damaged[replica] = None
                text = f"{replica:.500}; another was read, and `mendflow data files remove-replica` takes this one out"
                self._notices.post(
                    f"a replica is not what the catalogue says: {text}", case=job.case, item=job.spec.item
                )
        while len(self._damaged) > DAMAGED_REMEMBERED_MAX:
            del self._damaged[next(iter(self._damaged))]

    def _report_changed_inputs(self, job: Job, outcome: Outcome) -> None:
        """Reported once for all jobs of a loop: `mendflow why` says it of each."""
        changed = outcome.measures.changed_inputs if outcome.ok else ()
        if changed and (told := (job.case, job.name, changed[0])) not in self._changed:
            self._changed[told] = None
            text = f"job {job.id} changed its input {changed[0]:.200}, which `link-inputs` allows it only to read"
            advice = "the file was removed from the pilot's cache; let the job have copies, without `link-inputs`"
            self._notices.post(f"{text}: {advice}", case=job.case, item=job.spec.item)
        while len(self._changed) > CHANGED_REMEMBERED_MAX:
            del self._changed[next(iter(self._changed))]

    async def end(self, job: Job, events: Sequence[job_events.JobEvent], outcome: Outcome | None = None) -> None:
        """The attempt ends with these events; unless it would be retried, and the job is mended instead. Then the job
        is over, or it waits for the next attempt."""
        self._meta.detach(job)
        failed = job_lifecycle.pending_retry(events)
        judge = self._meta.hub.provider(FailedAttempts) if failed is not None else None
        if failed is not None and judge is not None:
            outcome = outcome or Outcome(fault=failed.fault)
            fence, taken = job.fence, await self._ask_recovery(judge, job, outcome)
            if job.state is not JobState.RUNNING or job.fence != fence:
                return  # it was cancelled meanwhile
            events = [job_lifecycle.give_up(failed, outcome)] if taken else events
        self._meta.apply(job, events)
        if job.finished:
            await self._meta.finish(job)
            return
        self._meta.enqueue(job)
        self._meta.changed(job, from_outside=True)
        self._meta.hub.publish(JobRequeued(job))

    async def _ask_recovery(self, judge: FailedAttempts, job: Job, outcome: Outcome) -> bool:
        self.in_recovery.add(job.id)
        try:
            return await judge.attempt_failed(job, outcome)
        finally:
            self.in_recovery.discard(job.id)

    async def was_accepted(self, pilot: PilotRecord, report: AttemptReport) -> bool | None:
        """Whether a report was accepted that is repeated because the verdict did not reach the pilot. None if the
        document does not say yet: then only the job's home can judge it."""
        await self._ledger.settled()
        found = await self._store.get(JOB_KIND, report.job)
        if found is None:
            return False
        now, policy = self._clock.now(), self._meta.policy
        verdict = job_lifecycle.report(
            _decode(found.body), pilot.id, report.fence, report.outcome, now=now, policy=policy
        )
        return None if verdict.events else verdict.accepted
