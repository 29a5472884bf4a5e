"""A trace on this machine and in the simulator, side by side.

The simulator knows how long each task takes, and not what a job costs beside that: starting processes, moving files,
speaking to the server. So a probe is run first, a small flow of jobs like the trace's. What a job costs is what makes
the simulated probe take as long as the real one did. With that one number the whole trace is simulated; nothing of how
long the trace really took goes into it."""

from collections.abc import Mapping
from math import ceil
from statistics import fmean
from typing import Final

import msgspec

from mendflow.formats.wfformat import Scale, Task, Trace, TraceFlow, Work
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import play
from mendflow.sim.guesses import Guess, Guesses

PROBE: Final = "probe"
PROBE_LAYERS: Final = 3
PROBE_ROUNDS: Final = 2
"""The probe's jobs stand in layers, each so large that every slot has so many of them."""

PROBE_S: Final = (0.1, 0.5)
"""How long a job of the probe takes, at least and at most; between them as long as the trace's do on the average."""

WITHIN: Final = 0.10
FITTED_S: Final = 0.0005
EXCHANGE_S: Final = 0.002
NO_TIME_BYTES_PER_S: Final = 1e15


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One pilot on one machine."""

    slots: int
    cpus: float
    memory_bytes: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What both said. `cost_s` is what a job was found to cost beside its own time."""

    trace: str
    jobs: int
    slots: int
    scale: Scale
    probe_s: float
    cost_s: float
    real_s: float
    simulated_s: float

    @property
    def off(self) -> float:
        """How much longer the simulated run took, as a part of the real one."""
        return self.simulated_s / self.real_s - 1 if self.real_s else 0.0

    @property
    def holds(self) -> bool:
        return abs(self.off) <= WITHIN


def probe_of(trace: Trace, scale: Scale, slots: int) -> Trace:
    """A trace of a few layers of tasks that take, read and make what the trace's do on the average; with that scale."""
    tasks = list(trace.tasks.values())
    mean_s = fmean((task.runtime_s or 0.0) for task in tasks) * scale.time
    runtime_s = min(max(mean_s, PROBE_S[0]), PROBE_S[1]) / (scale.time or 1.0)
    reads, makes = (ceil(fmean(map(len, files))) for files in zip(*((t.reads, t.makes) for t in tasks), strict=True))
    width = slots * PROBE_ROUNDS
    layers = [[f"{layer}-{number}" for number in range(width)] for layer in range(PROBE_LAYERS)]
    made = {name: tuple(f"{name}.{number}" for number in range(max(makes, 1))) for layer in layers for name in layer}
    size = round(fmean(trace.sizes.values())) if trace.sizes else 0
    found: dict[str, Task] = {}
    for before, layer in zip([[], *layers], layers, strict=False):
        brought = {made[name][0]: name for name in before[: max(reads, 1)]}
        needs = tuple(before)
        for name in layer:
            found[name] = Task(
                id=name, needs=needs, reads=tuple(brought), makes=made[name], brought=brought, runtime_s=runtime_s
            )
    sizes = {file: size for files in made.values() for file in files}
    return Trace(name=PROBE, version=trace.version, tasks=found, sizes=sizes)


def simulated(made: TraceFlow, machine: Machine, cost_s: float, seed: int = 0) -> GridResult:
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
    return play(scene, made.flow, nature_of(made.works))


def nature_of(works: Mapping[str, Work]) -> Guesses:
    """What the jobs of a trace do, for the simulator."""
    return Guesses({name: Guess(seconds=work.seconds, files=work.files) for name, work in works.items()})


def fitted_cost_s(probe: TraceFlow, machine: Machine, measured_s: float) -> float:
    """What a job costs, if the probe took so long: found by halving, because more cost never makes it quicker."""
    least, most = 0.0, measured_s
    while most - least > FITTED_S:
        middle = (least + most) / 2
        if simulated(probe, machine, middle).turnaround_s < measured_s:
            least = middle
        else:
            most = middle
    return (least + most) / 2
