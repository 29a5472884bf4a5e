"""The waiting jobs that read a file.

Most files are read by one job: then that job's entry itself is the value, and nothing else is stored for the file."""

from heapq import heappush

from mendflow.core.model.ids import JobId
from mendflow.core.scheduling.job_heap import Entry, JobHeap


class ReaderIndex:
    def __init__(self) -> None:
        self.jobs: dict[int, Entry | JobHeap] = {}

    def add(self, entry: Entry) -> None:
        jobs = self.jobs
        for file in entry[4]:
            known = jobs.get(file)
            if known is None:
                jobs[file] = entry
            elif isinstance(known, tuple):
                jobs[file] = JobHeap(sorted((known, entry)))
            else:
                heappush(known.heap, entry)

    def remove(self, entry: Entry, waiting: dict[JobId, Entry]) -> None:
        """The job no longer waits, and is already out of `waiting`."""
        for file in entry[4]:
            known = self.jobs[file]
            if isinstance(known, tuple):
                assert known is entry, f"{known[1]} stands where {entry[1]} was"
                del self.jobs[file]
                continue
            known.dead += 1
            known.settle(waiting)
            if len(known.heap) == 1:
                self.jobs[file] = known.heap[0]
            elif not known.heap:
                del self.jobs[file]

    def readers_of(self, file: int, most: int) -> tuple[Entry, ...] | list[Entry]:
        """Some of the jobs that read this file, the first in order among them."""
        known = self.jobs[file]
        return (known,) if isinstance(known, tuple) else known.some(most)
