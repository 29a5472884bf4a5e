"""Compares a trace on this machine with the same trace in the simulator.

The simulator knows how long each task takes, but not a job's overhead: starting processes, moving files, talking to the
server. So a probe, a small flow of similar jobs, runs before and after the trace. The overhead is chosen so that the
simulated probe takes as long as the real one. With that one number the whole trace is simulated; the measured time of
the trace itself is not used."""

from collections.abc import Mapping
from random import Random
from statistics import fmean
from typing import Final

import msgspec

from mendflow.formats.wfformat import Scale, TaskWork, Trace, TraceFlow, TraceTask
from mendflow.sim.estimates import Estimate, Estimates
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import play

PROBE: Final = "probe"
CHAINS_A_SLOT: Final = 2
CHAIN_TASKS: Final = 5
PROBE_S: Final = (0.1, 0.5)
"""Bounds of the mean run time of a probe's job; within them, that of the trace's jobs. The times vary, because jobs
that start or end at the same moment slow each other down."""

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
    """Both results. `mean_s` is a job's mean run time, `cost_s` its overhead as determined by the probe."""

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
        """How much longer the simulated run took, relative to the real one."""
        return self.simulated_s / self.real_s - 1 if self.real_s else 0.0

    @property
    def holds(self) -> bool:
        return abs(self.deviation) <= TOLERANCE

    @property
    def of_costs(self) -> bool:
        """Whether mostly overhead was compared, which varies with the load of the machine."""
        return self.mean_s < COSTS_MOST * self.cost_s


def probe_of(trace: Trace, scale: Scale, slots: int) -> Trace:
    """Chains of tasks whose run times vary by half around the mean of the trace's, with as many input and output files;
    to be scaled like the trace."""
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
    """Simulate the trace on such a machine."""
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


def job_model_of(works: Mapping[str, TaskWork]) -> Estimates:
    """What the jobs of a trace do, for the simulator."""
    return Estimates({name: Estimate(seconds=work.seconds, files=work.files) for name, work in works.items()})


def compare_runs(
    made: TraceFlow, probe: TraceFlow, machine: MachineSize, took: MeasuredTimes, scale: Scale, seed: int
) -> TraceComparison:
    """Compare both, after the real run has ended."""
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
    """The overhead per job for which the probe takes so long, by bisection: more overhead never makes it faster."""
    least, most = 0.0, measured_s
    while most - least > FITTED_S:
        middle = (least + most) / 2
        if simulate_trace(probe, machine, middle).turnaround_s < measured_s:
            least = middle
        else:
            most = middle
    return (least + most) / 2
