"""What is known or assumed of a flow's jobs before they run: run times and file sizes.

There are several sources, and the more specific one wins field by field: the command line, an earlier case, a trace,
and last the flow's own `expected`. Jobs of which nothing is known are all reported before the simulation starts."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Final

import msgspec

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Activity, Flow, Invoke, JobActivity, Pick, Receive, UserTask
from mendflow.core.model.ids import item_name
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.values import Value
from mendflow.sim.grid.job_model import SimulatedWork

ANY: Final = "*"
"""The name that stands for every other job."""
TOLD_MAX: Final = 8


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """For jobs of one name, or for one item. None means unknown. With `samples`, a duration is one of them, else
    `seconds` with deviation `spread_s`. `file_bytes` is for each file that is not in `files`."""

    seconds: float | None = None
    spread_s: float = 0.0
    samples: tuple[float, ...] = ()
    file_bytes: int | None = None
    files: dict[str, int] = {}
    outputs: Value = None

    @property
    def timed(self) -> bool:
        return self.seconds is not None or bool(self.samples)

    def over(self, other: "Estimate") -> "Estimate":
        """This estimate, completed from another one."""
        timed = self if self.timed else other
        return Estimate(
            seconds=timed.seconds,
            spread_s=timed.spread_s,
            samples=timed.samples,
            file_bytes=self.file_bytes if self.file_bytes is not None else other.file_bytes,
            files=other.files | self.files,
            outputs=self.outputs if self.outputs is not None else other.outputs,
        )

    def duration_s(self, chance: Random) -> float:
        if self.samples:
            return chance.choice(self.samples)
        assert self.seconds is not None, "jobs of which nothing is known are refused before"
        return max(0.0, chance.gauss(self.seconds, self.spread_s)) if self.spread_s else self.seconds


class Estimates:
    """The behaviour of a flow's jobs, by item and by name."""

    def __init__(self, by_name: Mapping[str, Estimate]) -> None:
        self._by_name = dict(by_name)

    def of(self, spec: JobSpec, chance: Random) -> SimulatedWork:
        estimate = self._guess(spec)
        files = {name: estimate.files.get(name, estimate.file_bytes or 0) for name in spec.files}
        return SimulatedWork(seconds=estimate.duration_s(chance), files=files, outputs=estimate.outputs)

    def knows(self, job: JobActivity) -> bool:
        named = (self._by_name.get(name) for name in (display_name(job), ANY))
        return bool(job.expected_ms) or any(estimate is not None and estimate.timed for estimate in named)

    def _guess(self, spec: JobSpec) -> Estimate:
        """A estimate for one job comes before the estimate for every job."""
        own, named, any = (self._by_name.get(key, Estimate()) for key in (str(spec.item), item_name(spec.item), ANY))
        expected = Estimate(seconds=spec.expected_ms / 1000) if spec.expected_ms else Estimate()
        return own.over(named).over(expected).over(any)


def merge_estimates(layers: Iterable[Mapping[str, Estimate]]) -> dict[str, Estimate]:
    """Merge several sets of estimates; the earlier wins."""
    whole: dict[str, Estimate] = {}
    for layer in layers:
        for name, estimate in layer.items():
            whole[name] = whole[name].over(estimate) if name in whole else estimate
    return whole


def display_name(activity: Activity) -> str:
    """The name that people know it by."""
    return activity.label or activity.name


def jobs_of(flow: Flow) -> dict[str, JobActivity]:
    """Every job that the flow and the flows that it calls may run, by display name."""
    return {
        display_name(each): each
        for part in _with_called(flow)
        for each in walk_activities(part)
        if isinstance(each, JobActivity)
    }


def logical_inputs(flow: Flow) -> set[str]:
    """The logical files that jobs name literally, without an expression."""
    named = (source for job in jobs_of(flow).values() for source in job.inputs.values() if isinstance(source, str))
    return {source for source in named if source.startswith(LOGICAL_PREFIX) and "${{" not in source}


def check_known(flow: Flow, estimates: Estimates) -> None:
    """Refuse jobs whose behaviour is unknown."""
    foreign = [
        display_name(each)
        for part in _with_called(flow)
        for each in walk_activities(part)
        if isinstance(each, UserTask | Receive | Invoke) or (isinstance(each, Pick) and not each.alarms)
    ]
    if foreign:
        raise InvalidRequest(
            f"{_some(foreign)}: waits for a person or a message, and there is nobody in a simulated world; "
            "leave it out of the flow that you simulate"
        )
    unknown = sorted(name for name, job in jobs_of(flow).items() if not estimates.knows(job))
    if unknown:
        raise InvalidRequest(
            f"nothing is known of how long these jobs take: {_some(unknown)}; say it with --runtime {unknown[0]}=60, "
            "or with `expected:` in the flow, or take it from a case that ran: --like CASE"
        )


def _with_called(flow: Flow) -> list[Flow]:
    return [flow, *(inner for called in flow.calls for inner in _with_called(called))]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - TOLD_MAX} more" if len(names) > TOLD_MAX else ""
    return ", ".join(names[:TOLD_MAX]) + more
