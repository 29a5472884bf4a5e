"""How long a job did not run because something was taken from it by force.

Counted from the last that an attempt said until the next begins; where it had not begun yet, from what happened to its
pilot or to a server. Where the server that decides about the job, or the pilot that has it as far as that server knows,
was killed or stopped in between, the count begins anew: that is another kill. Time in which there was no store, or not
one server, is not counted: nobody can decide anything then."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from mendflow.core.model.jobs import Attempt as Granted
from mendflow.core.model.jobs import Job
from tests.e2e.chaos.attempts import Attempt, Attempts
from tests.e2e.chaos.fleet import PILOTS, SERVERS, Fleet, steady_us
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
    """The job did not run from `since_us` to `again_us`, and `counted_us` of that was for want of anybody to run it."""

    job: Job
    turn: int
    since_us: int
    again_us: int
    counted_us: int

    @property
    def whole_us(self) -> int:
        return self.again_us - self.since_us


class Recoveries:
    """All of them, by the lines of the jobs and what was done to whom."""

    def __init__(
        self, fleet: Fleet, jobs: Sequence[Job], attempts: Attempts, troubles: Sequence[Trouble], homes: HomesSeen
    ) -> None:
        self._pilots = {fleet.pilot_id(name): name for name in PILOTS}
        self._servers = fleet.server_names
        self._troubles = troubles
        self._homes = homes
        self._ahead_us = steady_us()
        self.all = [each for job in jobs for each in self._of(job, attempts[job.id])]

    def _of(self, job: Job, lines: Mapping[int, Attempt]) -> Iterator[Recovery]:
        for turn, attempt in enumerate(job.history[:-1]):
            following = job.history[turn + 1]
            since = lines[attempt.fence].last_at if attempt.fence in lines else self._hit(attempt)
            if since is None:
                continue
            again = lines[following.fence].first_at if following.fence in lines else self._granted_us(following)
            start = max([since, *self._hit_again(job, attempt, since, again)])
            yield Recovery(job, turn, since, again, again - start - self._nobody_us(start, again))

    def _nobody_us(self, start: int, end: int) -> int:
        """For how much of this span nobody could decide anything."""
        turns = {each.at_us for each in self._troubles} | {each.until_us for each in self._troubles}
        edges = [start, *sorted(at for at in turns if start < at < end), end]
        return sum(until - at for at, until in pairwise(edges) if self._nobody(at))

    def _nobody(self, at_us: int) -> bool:
        out = {each.whom for each in self._troubles if each.kind.startswith(("server", "store")) and each.lasts(at_us)}
        return "store" in out or out.issuperset(SERVERS)

    def _granted_us(self, attempt: Granted) -> int:
        return attempt.granted_at * 1000 + self._ahead_us

    def _hit(self, attempt: Granted) -> int | None:
        """What happened first to one that had not begun; None if it was just given back."""
        whose = (self._pilots.get(attempt.pilot), *SERVERS)
        later = (
            each.at_us for each in self._troubles if each.at_us >= self._granted_us(attempt) and each.whom in whose
        )
        return None if attempt.end == "returned" else next(later, None)

    def _hit_again(self, job: Job, attempt: Granted, since: int, again: int) -> list[int]:
        """When its server was hit, and its pilot for as long as it had the job."""
        pilot, until = self._pilots.get(attempt.pilot), attempt.ended_at * 1000 + self._ahead_us
        return [
            each.at_us
            for each in self._troubles
            if since < each.at_us < again
            and (each.whom == self._home(job, each.at_us) or (each.whom == pilot and each.at_us < until))
        ]

    def _home(self, job: Job, at_us: int) -> str:
        return self._servers.get(self._homes.of(job.case, at_us), "nowhere")

    def story(self, found: Recovery) -> str:
        """What one would want to know of a job that did not run for too long; seconds after it stopped."""
        job, since, again = found.job, found.since_us, found.again_us
        told = [f"{job.id} did not run for {found.whole_us / 1e6:.1f} s, of which {found.counted_us / 1e6:.1f} s count"]
        for each in self._troubles:
            if each.at_us < again and (not each.until_us or each.until_us > since - 1_000_000):
                span = f"{(each.at_us - since) / 1e6:.1f} to {((each.until_us or again) - since) / 1e6:.1f}"
                told.append(f"{each.whom} {each.kind} from {span}")
        for attempt in job.history[found.turn : found.turn + 2]:
            granted = (self._granted_us(attempt) - since) / 1e6
            ended = (attempt.ended_at * 1000 + self._ahead_us - since) / 1e6
            place = self._pilots.get(attempt.pilot)
            told.append(f"attempt {attempt.fence} in {place}: from {granted:.1f} to {ended:.1f}, {attempt.end}")
        lived = [self._home(job, at) for at in range(since, again, 1_000_000)]
        return "\n".join([*told, f"its home, second by second: {' '.join(lived)}"])
