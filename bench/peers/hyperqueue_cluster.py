"""HyperQueue: its server and one worker of two cores, through its Python package; nothing of it is on disk."""

import os
import time
from typing import Any

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

from bench.subject import WORKERS, CaseReference, Kind, answer

Task = Any


class HyperQueue(CaseReference):
    kinds = (Kind.SHELL, Kind.CHAIN)

    def start(self) -> None:
        self._marks = 0
        os.chdir(self.folder)
        self.cluster = self.keep(LocalCluster(server_dir=str(self.folder)))
        self.cluster.start_worker(WorkerConfig(cores=WORKERS))
        self.client = self.cluster.client()

    def shell(self, jobs: int) -> None:
        job = Job()
        self._finish(job, [self._true(job, []) for _ in range(jobs - 1)])

    def chain(self, jobs: int) -> None:
        job = Job()
        last: list[Task] = []
        for _ in range(jobs - 1):
            last = [self._true(job, last)]
        self._finish(job, last)

    def _true(self, job: Job, needs: list[Task]) -> Task:
        return job.program(["/bin/sh", "-c", "true"], deps=needs, stdout=None, stderr=None)

    def _finish(self, job: Job, needs: list[Task]) -> None:
        """The last job leaves a mark: HyperQueue's own wait looks only once a second."""
        self._marks += 1
        mark = self.folder / f"mark-{self._marks}"
        job.program(["/bin/sh", "-c", f": > {mark}"], deps=needs, stdout=None, stderr=None)
        self.client.submit(job)
        while not mark.exists():
            time.sleep(0.001)


if __name__ == "__main__":
    answer(HyperQueue)
