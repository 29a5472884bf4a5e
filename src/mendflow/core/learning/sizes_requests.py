"""What a job asks for whose memory or time is learned: worked out from its own document and from the finished jobs of
its name. A job never asks for more than its bound, nor for as little as has failed it already while its bound allows
more."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from mendflow.core.learning.sizes import MEMORY, TIME, FinishedRun, SizeAnswer, SizeModel
from mendflow.core.model.faults import Category
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Attempt, Job, JobSizing, JobSpec, JobState, LearnedRequest
from mendflow.core.scheduling.amounts import duration, size

MEMORY_STEP_BYTES: Final = 16 * 1024 * 1024
TIME_STEP_MS: Final = 10_000
"""Requests are rounded up to these: jobs that ask for the same stand in the same line."""


class LearnedJobName(msgspec.Struct, frozen=True):
    """What jobs are learned by: the flow of the case that started everything, and their name in it."""

    flow: str
    name: str


_COMPLETED: Final = JobState.COMPLETED


def flow_of(case: CaseId) -> str:
    """The flow that a case's id names: of the case that started everything."""
    return str(case).partition(".")[0].rpartition("-")[0]


def job_name(job: Job) -> LearnedJobName:
    return LearnedJobName(flow_of(job.case), job.name)


class LearnedRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is remembered of a job that succeeded. `memory_max_bytes` and `wall_max_ms` are its bounds, or, where they
    were not learned, what its flow said; `asked_bytes` and `asked_ms` what it asked for."""

    input_bytes: int
    peak_bytes: int
    ran_ms: int
    memory_max_bytes: int = 0
    wall_max_ms: int = 0
    asked_bytes: int = 0
    asked_ms: int = 0


def run_of(job: Job) -> LearnedRun | None:
    """What a job teaches that has ended; None if that is nothing: it failed, was not run, or was too short to be
    measured."""
    outcome = job.outcome
    if (
        outcome is None
        or outcome.measures.peak_bytes <= 0
        or outcome.fault is not None
        or outcome.cached_from
        or job.state is not _COMPLETED
    ):
        return None
    needs, measures = job.spec.resources, outcome.measures
    return LearnedRun(
        input_bytes(job.spec) if job.spec.inputs else 0,
        measures.peak_bytes,
        measures.ran_ms,
        needs.memory_max_bytes if needs.memory_auto else needs.memory_bytes,
        needs.wall_max_ms if needs.wall_auto else needs.wall_ms,
        needs.memory_bytes,
        needs.wall_ms,
    )


class JobSizes:
    """What is known of the jobs of one name."""

    def __init__(self, runs: Iterable[LearnedRun] = ()) -> None:
        self.memory = SizeModel(MEMORY)
        self.time = SizeModel(TIME)
        for run in runs:
            self.learn(run)

    def learn(self, run: LearnedRun) -> None:
        weight = float(max(run.ran_ms, 1))
        self.memory.learn(FinishedRun(run.input_bytes, run.peak_bytes, run.memory_max_bytes, weight))
        self.time.learn(FinishedRun(run.input_bytes, run.ran_ms, run.wall_max_ms))

    def note_failure(self, category: Category) -> bool:
        """An attempt failed; whether later jobs ask for more because of that."""
        model = {Category.MEMORY: self.memory, Category.TIME: self.time}.get(category)
        if model is None or model.scout_failed:
            return False
        model.note_failure()
        return model.scout_failed

    def share_failures(self, before: "JobSizes") -> None:
        """Scouts that failed before have failed still."""
        for model, other in ((self.memory, before.memory), (self.time, before.time)):
            if other.scout_failed:
                model.note_failure()

    def request(self, job: Job) -> LearnedRequest:
        """What the job is to ask for."""
        needs, inputs = job.spec.resources, input_bytes(job.spec)
        known = job.sizing or JobSizing(memory_least_bytes=needs.memory_bytes, wall_least_ms=needs.wall_ms)
        memory, wall, reasons = needs.memory_bytes, needs.wall_ms, []
        if needs.memory_auto:
            asked = _amount(self.memory, inputs, known.memory_least_bytes, needs.memory_max_bytes, failed_bytes(job))
            memory = rounded_up(asked.amount, MEMORY_STEP_BYTES, needs.memory_max_bytes)
            reasons.append(_sentence("memory", size(memory) if memory else "", asked, self.memory, size))
        if needs.wall_auto:
            asked = _amount(self.time, inputs, known.wall_least_ms, needs.wall_max_ms, failed_ms(job))
            wall = rounded_up(asked.amount, TIME_STEP_MS, needs.wall_max_ms)
            reasons.append(_sentence("time", duration(wall) if wall else "", asked, self.time, duration))
        return LearnedRequest(memory, wall, msgspec.structs.replace(known, reasons=tuple(reasons)))


def input_bytes(spec: JobSpec) -> int:
    return sum(file.bytes for file in spec.inputs.values())


def failed_bytes(job: Job) -> int:
    """The most memory that an attempt of this job had and that was too little."""
    return max((_limit(each, "limit_bytes") or each.asked_bytes for each in _failed(job, Category.MEMORY)), default=0)


def failed_ms(job: Job) -> int:
    """The most time."""
    return max((_limit(each, "limit_ms") or each.asked_ms for each in _failed(job, Category.TIME)), default=0)


def rounded_up(amount: int, step: int, bound: int) -> int:
    whole = -(-amount // step) * step
    return min(whole, bound) if bound else whole


def _failed(job: Job, category: Category) -> Iterator[Attempt]:
    return (each for each in job.history if each.fault is not None and each.fault.category is category)


def _limit(attempt: Attempt, name: str) -> int:
    data = attempt.fault.data if attempt.fault is not None else None
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, int) else 0


def _amount(model: SizeModel, inputs: int, least: int, bound: int, failed: int) -> SizeAnswer:
    """What to ask for: at least `least`, which a repair has set, and more than has failed."""
    asked = model.ask(inputs, bound)
    raised = max(least, model.ask_more(failed, bound).amount if failed else 0)
    if raised:
        known = model.ask_more(0, bound).amount if model.runs else 0
        raised = max(raised, asked.amount, known)
        asked = SizeAnswer(raised, "raised", runs=len(model.runs))
    return SizeAnswer(min(asked.amount, bound) if bound else asked.amount, asked.basis, asked.margin, asked.runs)


_BASES: Final = {
    "largest": "the most that the last {runs} used, {largest},",
    "similar input": "the most that those of the last {runs} with inputs of a similar size used,",
    "line over input": "what the last {runs} used, by the size of their inputs,",
}


def _sentence(word: str, amount: str, asked: SizeAnswer, model: SizeModel, text: Callable[[float], str]) -> str:
    """How the amount was found, for people."""
    runs = f"{asked.runs} such jobs" if asked.runs != 1 else "such job"
    if asked.basis == "scout":
        how = f"it is a scout: {asked.runs or 'no'} such job{'s' if asked.runs != 1 else ''} ended so far"
    elif asked.basis == "raised":
        how = "raised after a failure"
    elif asked.basis == "bound":
        how = f"its bound, which has wasted least over the last {runs}"
    else:
        basis = _BASES[asked.basis].format(runs=runs, largest=text(model.largest))
        how = f"{basis} and {asked.margin:.0%} and {text(model.traits.headroom)} more"
    return f"it asks for {amount or 'no'} {'of ' if amount else ''}{word}: {how}"
