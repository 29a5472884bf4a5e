"""The workload: flows of jobs whose run times and failures are drawn beforehand, and their results.

A job's command encodes its behaviour: how long each attempt takes, and how many of them fail by themselves."""

from random import Random

from mendflow.core.model.flow import Flow, JobActivity, Parallel, Sequence, Wait
from mendflow.core.model.ids import FlowName
from mendflow.pilot.slot.messages import SlotWork
from mendflow.sim.observer import Observer

SHORT_S = (0.003, 0.03)
USUAL_S = (0.3, 3.0)
LONG_S = 9.0
FAILURES_MAX = 2


def command(chance: Random, long_s: float) -> tuple[str, int]:
    """A job's behaviour as its command, and how many retries it needs."""
    kind = chance.random()
    seconds = chance.uniform(*(SHORT_S if kind < 0.3 else USUAL_S if kind < 0.85 else (USUAL_S[1], long_s)))
    failures = chance.randint(1, FAILURES_MAX) if chance.random() < 0.15 else 0
    return f"work {seconds:.4f} {failures}", failures


def flow(name: str, jobs: int, chance: Random, long_s: float = LONG_S) -> Flow:
    """Steps one after the other, each of several parallel jobs. A job takes at most `long_s`."""
    steps: list[Parallel | Wait] = []
    left = jobs
    while left:
        width = min(left, chance.randint(1, 6))
        if chance.random() < 0.3:
            steps.append(Wait(name=f"pause-{left}", duration=chance.randint(10, 4_000)))
        branches = tuple(_job(f"j{left - n}", chance, long_s) for n in range(width))
        steps.append(Parallel(name=f"step-{left}", branches=branches))
        left -= width
    return Flow(name=FlowName(name), body=Sequence(name="steps", body=tuple(steps)))


def _job(name: str, chance: Random, long_s: float) -> JobActivity:
    text, failures = command(chance, long_s)
    return JobActivity(name=name, command=text, retries=failures, retry_wait_ms=chance.choice((0, 100, 1000)))


class RandomOutcomes:
    """An attempt fails as long as its job has failures left, and succeeds after that."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.bad_ends: dict[str, int] = {}

    def begins(self, work: SlotWork, pilot: str) -> tuple[float, bool]:
        self._observer.begins(work.job, work.fence, pilot)
        _, seconds, failures = work.command.split()
        return float(seconds), self.bad_ends.get(work.job, 0) >= int(failures)

    def ends(self, work: SlotWork, how: str) -> None:
        if how == "badly":
            self.bad_ends[work.job] = self.bad_ends.get(work.job, 0) + 1
        self._observer.ends(work.job, work.fence, how)
