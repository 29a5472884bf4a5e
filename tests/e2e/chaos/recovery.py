"""How long a job did not run because something was taken from it by force.

Counted from the last that an attempt said (or, where it had not begun yet, from what happened to its pilot) until the
next attempt begins. Where the server that decides about the job was killed or stopped in between, the count begins
anew: that is another kill. Time in which there was no store is not counted: nobody can decide anything then."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mendflow.core.model.jobs import Job
from tests.e2e.chaos.attempts import Attempt, Attempts
from tests.e2e.chaos.fleet import PILOTS, Fleet, steady_us
from tests.e2e.chaos.torment import Trouble


class HomesSeen:
    """Which server had which case, look by look."""

    def __init__(self) -> None:
        self._at: list[int] = []
        self._homes: list[Mapping[str, str]] = []

    def see(self, at_us: int, homes: Mapping[str, str]) -> None:
        self._at.append(at_us)
        self._homes.append(homes)

    def of(self, case: str, at_us: int) -> str:
        """The id of the server that had it then, as of the last look before."""
        place = bisect_right(self._at, at_us)
        seen = (homes[case] for homes in reversed(self._homes[:place]) if homes.get(case))
        return next(seen, "")


class Recovery(NamedTuple):
    job: str
    fence: int
    whole_us: int
    counted_us: int
    losses: int  # of the job until then


class Told(NamedTuple):
    interrupted: int
    longest_s: float
    longest_whole_s: float
    worst: tuple[Recovery, ...]

    def __str__(self) -> str:
        return (
            f"{self.interrupted} interrupted attempts, the longest until the next {self.longest_s:.1f} s"
            f" ({self.longest_whole_s:.1f} s with all that happened in between); {self.worst}"
        )


def recoveries(
    fleet: Fleet, jobs: Sequence[Job], attempts: Attempts, troubles: Sequence[Trouble], homes: HomesSeen
) -> Told:
    pilots = {fleet.pilot_id(name): name for name in PILOTS}
    servers = fleet.server_names()
    found = [each for job in jobs for each in _of(job, attempts[job.id], troubles, homes, pilots, servers)]
    found.sort(key=lambda each: each.counted_us)
    longest = found[-1].counted_us if found else 0
    return Told(len(found), longest / 1e6, max((e.whole_us for e in found), default=0) / 1e6, tuple(found[-3:]))


def _of(
    job: Job,
    lines: Mapping[int, Attempt],
    troubles: Sequence[Trouble],
    homes: HomesSeen,
    pilots: Mapping[str, str],
    servers: Mapping[str, str],
) -> Iterator[Recovery]:
    ahead_us = steady_us()
    for turn, attempt in enumerate(job.history[:-1]):
        following = job.history[turn + 1]
        ours = [trouble.at_us for trouble in troubles if trouble.whom == pilots.get(attempt.pilot)]
        granted_us = attempt.granted_at * 1000 + ahead_us
        if attempt.fence in lines:
            since = lines[attempt.fence].last_at
        elif hit := [at for at in ours if at >= granted_us]:
            since = hit[0]
        else:
            continue  # it was given back before it began
        again = lines[following.fence].first_at if following.fence in lines else following.granted_at * 1000 + ahead_us
        beginnings = [since] + [
            trouble.at_us
            for trouble in troubles
            if since < trouble.at_us < again and servers.get(homes.of(job.case, trouble.at_us)) == trouble.whom
        ]
        start = max(beginnings)
        away = sum(trouble.lasted_within(start, again) for trouble in troubles if trouble.kind == "store killed")
        yield Recovery(job.id, attempt.fence, again - since, again - start - away, turn + 1)
