"""Records everything that really happened, as only an observer outside the simulation can know it.

Attempts are recorded when they really start and end, whatever any server believes; documents and journals when they
really reach the disk. A violated invariant is recorded at once."""

import hashlib
from collections.abc import Callable

import msgspec

from mendflow.core.model.jobs import Job, JobState
from mendflow.services.base.cluster import JOB_KIND
from mendflow.sim.fault_counts import FaultCounts
from mendflow.stores.contract import Append, Put, RemoveStream, Write

_decode_job = msgspec.json.Decoder(Job).decode
NATURAL_ENDS = ("well", "badly")


class ObservedAttempt(msgspec.Struct):
    """One attempt as it really was. `how` is well or badly (by itself), lease, killed, died."""

    pilot: str
    began_s: float
    ended_s: float = -1.0
    how: str = ""

    @property
    def has_ended(self) -> bool:
        return self.ended_s >= 0


class RunRecord:
    """What happened in a run, and which laws were broken. Two runs of a seed have the same hash."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._digest = hashlib.blake2b(digest_size=8)
        self.story: list[str] | None = None  # every event, for debugging
        self.violations: list[str] = []

    def tell(self, line: str) -> None:
        line = f"{self._now_s():.6f} {line}"
        self._digest.update(line.encode())
        if self.story is not None:
            self.story.append(line)

    @property
    def hash(self) -> str:
        return self._digest.hexdigest()

    def report_violation(self, law: str, what: str) -> None:
        self.violations.append(f"{law}, at {self._now_s():.3f} s: {what}")
        self.tell(f"BROKEN {law}: {what}")


class Observer(RunRecord):
    def __init__(self, now_s: Callable[[], float], counts: FaultCounts) -> None:
        super().__init__(now_s)
        self._counts = counts
        self.runs: dict[str, dict[int, ObservedAttempt]] = {}
        self.jobs: dict[str, Job] = {}  # as they are on disk
        self.gaps_s: list[float] = []  # from the violent end of an attempt to the start of the next

    # attempts

    def begins(self, job: str, fence: int, pilot: str) -> None:
        self.tell(f"{job} {fence} begins on {pilot}")
        runs = self.runs.setdefault(job, {})
        for other, run in runs.items():
            if not run.has_ended:
                self.report_violation(
                    "law 2", f"{job}: attempt {fence} begins on {pilot} while {other} runs on {run.pilot}"
                )
        if fence in runs:
            self.report_violation("law 2", f"{job}: attempt {fence} begins twice, on {runs[fence].pilot} and {pilot}")
        self._check_grant(job, fence, pilot)
        latest = max(runs.values(), key=lambda run: run.ended_s, default=None)
        if latest is not None and latest.has_ended and latest.how not in NATURAL_ENDS:
            self.gaps_s.append(self._now_s() - latest.ended_s)
        runs[fence] = ObservedAttempt(pilot, self._now_s())

    def _check_grant(self, job: str, fence: int, pilot: str) -> None:
        kept = self.jobs.get(job)
        if kept is None or kept.fence < fence:
            self.report_violation("law 1", f"{job}: attempt {fence} begins on {pilot}, and no disk knows of it")
        elif kept.finished:
            self.report_violation("law 2", f"{job}: attempt {fence} begins on {pilot}, and the job is over")
        elif kept.fence > fence or kept.state is not JobState.RUNNING or kept.pilot != pilot:
            held = f"{kept.state} under {kept.fence}, by {kept.pilot}"
            self.report_violation("law 2", f"{job}: attempt {fence} begins on {pilot}, and the job is {held}")

    def ends(self, job: str, fence: int, how: str) -> None:
        run = self.runs[job][fence]
        assert not run.has_ended, f"{job} {fence} ends twice"
        run.ended_s, run.how = self._now_s(), how
        self._counts.add(f"attempts that ended: {how}")
        self.tell(f"{job} {fence} ends: {how}")

    # the disk

    def on_write(self, write: Write, by: str) -> None:
        if isinstance(write, RemoveStream):
            self.tell(f"{by}: removes {write.stream}")
        elif isinstance(write, Append):
            self.tell(f"{by}: journal {write.stream} +{len(write.entries)} at {write.expected}")
        else:
            self.tell(f"{by}: {type(write).__name__} {write.kind} {write.id}")
            if isinstance(write, Put) and write.kind == JOB_KIND:
                self._check_job(_decode_job(write.body))

    def _check_job(self, job: Job) -> None:
        before = self.jobs.get(job.id)
        self.jobs[job.id] = job
        if before is not None and before.fence > job.fence:
            self.report_violation("law 2", f"{job.id}: its fence went back from {before.fence} to {job.fence}")
        if before is not None and before.finished and (before.outcome, before.state) != (job.outcome, job.state):
            self.report_violation("law 2", f"{job.id}: it was over and is now {job.state}")
        for attempt in job.history:
            run = self.runs.get(job.id, {}).get(attempt.fence)
            if attempt.end not in ("", "cancelled") and run is not None and not run.has_ended:
                what = f"{job.id}: attempt {attempt.fence} is {attempt.end} and still runs on {run.pilot}"
                self.report_violation("law 3", what)
        if job.finished and (before is None or not before.finished):
            self._check_end(job)

    def _check_end(self, job: Job) -> None:
        """A job must end with the result of its last attempt, and of no other."""
        outcome, run = job.outcome, self.runs.get(job.id, {}).get(job.fence)
        assert outcome is not None
        outputs = outcome.outputs
        if outcome.ok and (run is None or run.how != "well" or outputs != {"fence": job.fence}):
            self.report_violation("law 2", f"{job.id}: it ended under fence {job.fence} with {outputs}, of {run}")
