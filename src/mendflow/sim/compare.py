"""A trace on this machine and in the simulator, side by side.

The simulator knows how long each task takes, and not what a job costs beside that: starting processes, moving files,
speaking to the server. So a probe is run before it and after it, a small flow of jobs like the trace's. What a job
costs is what makes the simulated probe take as long as the real one did. With that one number the whole trace is
simulated; nothing of how long the trace really took goes into it."""

from collections.abc import Mapping
from random import Random
from statistics import fmean
from typing import Final

import msgspec

from mendflow.formats.wfformat import Scale, TaskWork, Trace, TraceFlow, TraceTask
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import play
from mendflow.sim.guesses import Guess, Guesses

PROBE: Final = "probe"
CHAINS_A_SLOT: Final = 2
CHAIN_TASKS: Final = 5
PROBE_S: Final = (0.1, 0.5)
"""How long a job of the probe takes on the average, at least and at most; between them as long as the trace's jobs do.
Each takes another time than the next, for those that begin or end at the same moment are in each other's way."""

TOLERANCE: Final = 0.10
COSTS_MOST: Final = 1.5
FITTED_S: Final = 0.0005
EXCHANGE_S: Final = 0.002
NO_TIME_BYTES_PER_S: Final = 1e15


class MachineSize(msgspec.Struct, frozen=True, kw_only=True):
    """One pilot on one machine."""

    slots: int
    cpus: float
    memory_bytes: int


class MeasuredTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured on the machine."""

    probes_s: tuple[float, ...]
    real_s: float


class TraceComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What both said. A job's own time is `mean_s` on the average, and `cost_s` is what it was found to cost beside."""

    trace: str
    jobs: int
    slots: int
    scale: Scale
    mean_s: float
    probes_s: tuple[float, ...]
    cost_s: float
    real_s: float
    simulated_s: float

    @property
    def deviation(self) -> float:
        """How much longer the simulated run took, as a part of the real one."""
        return self.simulated_s / self.real_s - 1 if self.real_s else 0.0

    @property
    def holds(self) -> bool:
        return abs(self.deviation) <= TOLERANCE

    @property
    def of_costs(self) -> bool:
        """Whether it is rather the costs that were compared, which change with whatever else the machine does."""
        return self.mean_s < COSTS_MOST * self.cost_s


def probe_of(trace: Trace, scale: Scale, slots: int) -> Trace:
    """Chains of tasks that take what the trace's do on the average, give or take a half, and read and make as many
    files as those do; to be scaled like the trace."""
    tasks = list(trace.tasks.values())
    mean_s = fmean((task.runtime_s or 0.0) for task in tasks) * scale.time
    runtime_s = min(max(mean_s, PROBE_S[0]), PROBE_S[1]) / (scale.time or 1.0)
    reads, makes = (
        max(1, round(fmean(map(len, files)))) for files in zip(*((t.reads, t.makes) for t in tasks), strict=True)
    )
    chance = Random(PROBE)
    found: dict[str, TraceTask] = {}
    for chain in range(slots * CHAINS_A_SLOT):
        before: TraceTask | None = None
        for place in range(CHAIN_TASKS):
            name = f"{chain}-{place}"
            made_by = {file: before.id for file in before.makes[:reads]} if before is not None else {}
            found[name] = before = TraceTask(
                id=name,
                needs=(before.id,) if before is not None else (),
                reads=(*made_by, *(f"given.{number}" for number in range(reads - len(made_by)))),
                makes=tuple(f"{name}.{number}" for number in range(makes)),
                made_by=made_by,
                runtime_s=runtime_s * chance.uniform(0.5, 1.5),
            )
    size = round(fmean(trace.sizes.values())) if trace.sizes else 0
    sizes = {file: size for task in found.values() for file in (*task.reads, *task.makes)}
    return Trace(name=PROBE, version=trace.version, tasks=found, sizes=sizes)


def simulate_trace(made: TraceFlow, machine: MachineSize, cost_s: float, seed: int = 0) -> GridResult:
    """The trace on such a machine, in virtual time."""
    here = SiteScene(
        name="here",
        hosts=1,
        running=1,
        slots=machine.slots,
        cpus=machine.cpus,
        memory_bytes=machine.memory_bytes,
        element=ElementScene(delay=0.0, bytes_per_s=NO_TIME_BYTES_PER_S),
        disk_bytes_per_s=NO_TIME_BYTES_PER_S,
        overhead_s=cost_s,
    )
    scene = GridScene(seed=seed, sites=(here,), exchange_s=EXCHANGE_S)
    return play(scene, made.flow, job_model_of(made.works))


def job_model_of(works: Mapping[str, TaskWork]) -> Guesses:
    """What the jobs of a trace do, for the simulator."""
    return Guesses({name: Guess(seconds=work.seconds, files=work.files) for name, work in works.items()})


def compare_runs(
    made: TraceFlow, probe: TraceFlow, machine: MachineSize, took: MeasuredTimes, scale: Scale, seed: int
) -> TraceComparison:
    """Both beside each other, when the real one is over."""
    cost_s = fmean(fitted_cost_s(probe, machine, each) for each in took.probes_s)
    return TraceComparison(
        trace=str(made.flow.name),
        jobs=len(made.works),
        slots=machine.slots,
        scale=scale,
        mean_s=fmean(work.seconds for work in made.works.values()),
        probes_s=took.probes_s,
        cost_s=cost_s,
        real_s=took.real_s,
        simulated_s=simulate_trace(made, machine, cost_s, seed).turnaround_s,
    )


def fitted_cost_s(probe: TraceFlow, machine: MachineSize, measured_s: float) -> float:
    """What a job costs, if the probe took so long: found by halving, because more cost never makes it quicker."""
    least, most = 0.0, measured_s
    while most - least > FITTED_S:
        middle = (least + most) / 2
        if simulate_trace(probe, machine, middle).turnaround_s < measured_s:
            least = middle
        else:
            most = middle
    return (least + most) / 2
