"""Which runs there are, and how they are made: each setup with each seed, on as many processes as wanted.

A run depends on its setup and its seed alone, and results are put in the order of the plan. So neither the number of
processes nor which of them was faster can be seen in what comes out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Final

from experiments.paper.claims import CLAIMS
from experiments.paper.samples import Sample, sample_of
from experiments.paper.settings import CONDITIONS, PARAMETERS, Parameters, Setup, scene_of
from experiments.paper.workflows import WORKFLOWS, workflow
from mendflow.core.model.jobs import JobSpec
from mendflow.sim.grid.elements import draw_seconds
from mendflow.sim.grid.job_model import SimulatedWork
from mendflow.sim.grid.world import CaseScene, play_all
from mendflow.sim.parallel import run_parallel

Tell = Callable[[str], None]
RunKey = tuple[Setup, int, Parameters]

MATRIX: Final[tuple[Setup, ...]] = (
    *(
        Setup(each, condition, scheme, submission)
        for each in WORKFLOWS
        for condition in CONDITIONS
        for scheme in ("none", "C1", "C2", "C3")
        for submission in ("running", "demand")
    ),
    *(Setup(each, condition, "none", "direct") for each in WORKFLOWS for condition in CONDITIONS),
)
"""Every workflow under every condition with every scheme and submission. Without pilots there are no caches."""


class PaperJobModel:
    """Every job computes for about as long as any other, and makes one file."""

    def __init__(self, parameters: Parameters) -> None:
        self._own = parameters

    def of(self, spec: JobSpec, chance: Random) -> SimulatedWork:
        seconds = draw_seconds(self._own.job_s, chance)
        return SimulatedWork(seconds=seconds, files=dict.fromkeys(spec.files, self._own.file_bytes))


def setups_needed(figures: Iterable[int] = ()) -> list[Setup]:
    """The setups that these figures and the claims about them look at; of all figures, the whole matrix too."""
    wanted = set(figures)
    setups = [setup for claim in CLAIMS if not wanted or claim.figure in wanted for setup in claim.needs]
    return list(dict.fromkeys([*setups, *(() if wanted else MATRIX)]))


def run_setup(run: RunKey) -> Sample:
    setup, seed, parameters = run
    flow = workflow(setup.workflow, retry_wait_ms=round(parameters.retry_wait_s * 1000))
    case = CaseScene(flow=flow, at_s=parameters.arrive_s)
    return sample_of(setup, seed, play_all(scene_of(setup, seed, parameters), [case], PaperJobModel(parameters)))


def run_all(
    setups: Sequence[Setup],
    seeds: Sequence[int],
    *,
    processes: int = 1,
    parameters: Parameters = PARAMETERS,
    tell: Tell = lambda _: None,
) -> list[Sample]:
    """Every setup with every seed."""
    runs = [(setup, seed, parameters) for setup in setups for seed in seeds]
    return _collect_samples(run_parallel(run_setup, runs, processes, chunk=4), len(runs), tell)


def _collect_samples(samples: Iterator[Sample], of: int, tell: Tell) -> list[Sample]:
    found: list[Sample] = []
    for sample in samples:
        found.append(sample)
        if len(found) % 50 == 0 or len(found) == of:
            tell(f"{len(found)} of {of} runs")
    return found
