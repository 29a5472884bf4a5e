"""Every attempt of every job by the signs of life that it gave, and the laws that are read off these.

An attempt that was killed has no end: what is known of it is the last that it said. Nothing of it may come after the
next attempt began, however long it was stopped in between."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mendflow.core.model.jobs import Job, JobState


class Attempt(NamedTuple):
    """One attempt; times in microseconds of whatever clock the jobs use."""

    fence: int
    said: tuple[str, ...]
    first_at: int
    last_at: int
    pilot: str = ""

    @property
    def ended(self) -> bool:
        return self.said[-1] == "end"


Attempts = Mapping[str, Mapping[int, Attempt]]


def read_attempts(path: Path) -> Attempts:
    """Job -> fence -> attempt. A line: job, attempt, what it says and when; a pilot's name may stand before the last
    two."""
    lines: dict[str, dict[int, list[tuple[str, int, str]]]] = defaultdict(lambda: defaultdict(list))
    for line in path.read_text().splitlines():
        job, fence, *pilot, what, microseconds = line.split()
        lines[job][int(fence)].append((what, int(microseconds), "".join(pilot)))
    return {
        job: {
            fence: Attempt(fence, tuple(what for what, _, _ in said), said[0][1], said[-1][1], said[0][2])
            for fence, said in attempts.items()
        }
        for job, attempts in lines.items()
    }


def check_job(job: Job, attempts: Mapping[int, Attempt], *, finished_us: int) -> None:
    """One accepted result; no two attempts at once; none begins after one was accepted. `finished_us` is when the job
    was over, by the clock of the attempts."""
    accepted = job.fence
    assert job.state is JobState.COMPLETED, f"{job.id} is {job.state}: {job.outcome} after {job.history}"
    assert attempts[accepted].ended, f"{job.id}: the accepted attempt {accepted} did not end: {attempts}"
    assert max(attempts) == accepted, f"{job.id}: attempt {max(attempts)} started after {accepted} was accepted"
    in_order = sorted(attempts.values(), key=lambda attempt: attempt.first_at)
    for one, other in pairwise(in_order):
        assert one.last_at <= other.first_at, f"{job.id}: attempts {one.fence} and {other.fence} overlap: {in_order}"
    for attempt in in_order:
        assert attempt.said.count("start") == 1, f"{job.id}: an attempt started twice: {in_order}"
        assert attempt.first_at <= finished_us, f"{job.id}: an attempt started after the end: {in_order}"
