"""Hands the jobs that have ended to those who learn from them, some at a time.

Between two jobs that end a server does a hundred times as much as it takes to learn from one. What learns has then left
the processor's caches, and takes three times as long for a single job as for each of several in a row. So jobs that
have completed wait for some more, for a second, or until their case leaves this server. One that has failed, or whose
name somebody wants to hear of at once, does not wait."""

from collections.abc import Callable, Sequence
from typing import Final

from mendflow.core.model.jobs import Job, JobState
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.facts import CaseLeft
from mendflow.services.scheduling.facts import JobEnded

TOGETHER: Final = 32
WAIT_MS: Final = 1_000
_COMPLETED: Final = JobState.COMPLETED

JobReader = Callable[[Sequence[Job]], None]


class EndedJobs:
    def __init__(self, *, ledger: Ledger, clock: Clock, hub: Hub, learns: bool = True) -> None:
        self._clock = clock
        self._background = BackgroundTasks(ledger)
        self._jobs: list[Job] = []
        self._readers: list[JobReader] = []
        self._names_at_once: set[str] = set()
        self._is_timed = False
        self.learns = learns
        if learns:
            hub.subscribe(JobEnded, self._job_ended)
            hub.subscribe(CaseLeft, lambda _: self.hand_over())

    def read_by(self, reader: JobReader) -> None:
        """Call the reader with all jobs, in the order in which they ended."""
        self._readers.append(reader)

    def want_at_once(self, names: set[str]) -> None:
        """Do not let jobs of these names wait. The set may change later."""
        self._names_at_once = names

    async def stop(self) -> None:
        """What ends later waits for whoever asks for what was learned."""
        self._is_timed = True
        await self._background.stop()
        self.hand_over()

    def hand_over(self) -> None:
        """Let the readers have what waits: whoever asks for what was learned does this first."""
        if self._jobs:
            jobs, self._jobs = self._jobs, []
            for reader in self._readers:
                reader(jobs)

    def _job_ended(self, fact: JobEnded) -> None:
        job, jobs = fact.job, self._jobs
        jobs.append(job)
        if len(jobs) >= TOGETHER or job.state is not _COMPLETED or job.name in self._names_at_once:
            self.hand_over()
        elif not self._is_timed:
            self._is_timed = True
            self._background.start(self._hand_over_later())

    async def _hand_over_later(self) -> None:
        await self._clock.sleep(WAIT_MS)
        self._is_timed = False
        self.hand_over()
