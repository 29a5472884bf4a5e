"""What really happened in several domains, as only an observer outside the simulation can know it.

A job is known by the token in its command, wherever it runs and under whatever id. The laws: no two attempts of it run
at the same time; a host takes each key and fence once; it forgets no outcome before the origin has it on disk; and the
flow gets one outcome of it."""

from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.core.model.jobs import Job, JobState
from mendflow.pilot.slot.messages import SlotWork
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.domains.work_documents import (
    DOMAIN_PORT,
    HOSTED_KIND,
    SENT_KIND,
    HostedDocument,
    SentDocument,
    hosted_id,
)
from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.observer import ObservedAttempt, RunRecord
from mendflow.stores.contract import Append, Delete, Put, RemoveStream, Write

_decode_job: Final = msgspec.json.Decoder(Job).decode
_decode_case: Final = msgspec.json.Decoder(CaseDocument).decode
_decode_hosted: Final = msgspec.json.Decoder(HostedDocument).decode
_decode_sent: Final = msgspec.json.Decoder(SentDocument).decode


class DomainObserver(RunRecord):
    def __init__(self, now_s: Callable[[], float], counts: FaultCounts) -> None:
        super().__init__(now_s)
        self._counts = counts
        self.runs: dict[str, list[ObservedAttempt]] = {}  # by token
        self._running: dict[tuple[str, str, int], ObservedAttempt] = {}  # by pilot, job and fence
        self._failed: dict[str, int] = {}  # by token: so a job fails no more often than it says, wherever it is tried
        self._taken: dict[tuple[str, str], str] = {}  # by host and the key of the case: its id
        self.sent: dict[tuple[str, str], SentDocument] = {}  # by origin and key, as it is on disk
        self.hosted: dict[tuple[str, str], HostedDocument] = {}
        self.jobs: dict[tuple[str, str], Job] = {}
        self.dropped: dict[str, set[str]] = {}  # by domain: those that it has disconnected by force

    # Attempts

    def begins(self, work: SlotWork, pilot: str) -> tuple[float, bool]:
        _, seconds, failures, token = work.command.split()
        self.tell(f"{token}: {work.job} {work.fence} begins on {pilot}")
        runs = self.runs.setdefault(token, [])
        for other in runs:
            if not other.has_ended:
                what = f"{token} begins on {pilot} as {work.job} {work.fence} while it runs on {other.pilot}"
                self.report_violation("no two attempts overlap", what)
        run = ObservedAttempt(pilot, self._now_s())
        runs.append(run)
        self._running[(pilot, work.job, work.fence)] = run
        return float(seconds), self._failed.get(token, 0) >= int(failures)

    def ends(self, work: SlotWork, how: str) -> None:
        for (pilot, job, fence), run in list(self._running.items()):
            if (job, fence) == (work.job, work.fence) and not run.has_ended:
                run.ended_s, run.how = self._now_s(), how
                del self._running[(pilot, job, fence)]
        token = work.command.split()[3]
        if how == "badly":
            self._failed[token] = self._failed.get(token, 0) + 1
        self._counts.add(f"attempts that ended: {how}")
        self.tell(f"{token}: {work.job} {work.fence} ends: {how}")

    # Disks

    def on_write(self, domain: str, write: Write, by: str) -> None:
        if isinstance(write, RemoveStream):
            self.tell(f"{by}: removes {write.stream}")
            return
        if isinstance(write, Append):
            self.tell(f"{by}: journal {write.stream} +{len(write.entries)} at {write.expected}")
            return
        self.tell(f"{by}: {type(write).__name__} {write.kind} {write.id}")
        if isinstance(write, Delete):
            self.sent.pop((domain, write.id), None) if write.kind == SENT_KIND else None
        elif isinstance(write, Put):
            self._check_put(domain, write)

    def _check_put(self, domain: str, write: Put) -> None:
        if write.kind == SENT_KIND:
            self.sent[(domain, write.id)] = _decode_sent(write.body)
        elif write.kind == JOB_KIND:
            self._check_job(domain, _decode_job(write.body))
        elif write.kind == CASE_KIND:
            self._check_case(domain, _decode_case(write.body))
        elif write.kind == HOSTED_KIND:
            self._check_hosted(domain, _decode_hosted(write.body))

    def _check_job(self, domain: str, job: Job) -> None:
        before = self.jobs.get((domain, job.id))
        self.jobs[(domain, job.id)] = job
        if before is not None and before.finished and (before.outcome, before.state) != (job.outcome, job.state):
            self.report_violation("one outcome", f"{domain}: {job.id} was over and is now {job.state}")

    def _check_case(self, domain: str, case: CaseDocument) -> None:
        if case.void:  # it never began: another takes its place
            self._taken = {key: id for key, id in self._taken.items() if (key[0], id) != (domain, case.id)}
            return
        if case.port != DOMAIN_PORT or not case.key:
            return
        known = self._taken.setdefault((domain, case.key), case.id)
        if known != case.id:
            self.report_violation("taken once", f"{domain}: {case.key} is {known}, and {case.id} too")

    def _check_hosted(self, domain: str, document: HostedDocument) -> None:
        before = self.hosted.get((domain, document.id))
        self.hosted[(domain, document.id)] = document
        if before is not None and before.fence > document.fence:
            what = f"{domain}: {document.id} went back from fence {before.fence} to {document.fence}"
            self.report_violation("fences only rise", what)
        sent = self.sent.get((document.origin, document.key))
        if not document.over or document.stopped or sent is None or sent.outcome is not None:
            return
        if document.origin in self.dropped.get(domain, ()):
            return  # its administrator wanted it so
        if sent.fence == document.fence:
            what = f"{domain} forgets {hosted_id(document.origin, document.key)}, whose outcome its origin has not got"
            self.report_violation("outcomes are kept", what)

    def check_outcomes(self, tokens: dict[str, str]) -> None:
        """At the end: each job of each flow completed once, as its origin has it on disk."""
        completed: dict[str, int] = {}
        for (domain, _), job in self.jobs.items():
            token = (job.spec.command or "").split()[-1]
            if job.state is JobState.COMPLETED and tokens.get(token) == domain and job.case.startswith("flow-"):
                completed[token] = completed.get(token, 0) + 1
        for token, domain in tokens.items():
            if completed.get(token, 0) != 1:
                what = f"{token} of {domain} has {completed.get(token, 0)} accepted outcomes"
                self.report_violation("one outcome", what)
