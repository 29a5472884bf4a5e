"""A trace run here and simulated, in one command: how well does the simulator know this machine?

Both runs happen in a data folder of their own that is gone afterwards. The probe goes first: by the time the trace
begins, the pilot is there and warm."""

import asyncio
import tempfile
from pathlib import Path

from msgspec.structs import replace

from mendflow.cli.deploying import deploy
from mendflow.cli.embedded import Crew, here
from mendflow.cli.printing import say
from mendflow.cli.progress import ENDED, follow, progress
from mendflow.client import Client
from mendflow.core.model.flow import Flow
from mendflow.core.model.problems import Conflict
from mendflow.core.model.views import CaseView
from mendflow.formats.wfformat import Scale, as_flow, load_trace
from mendflow.pages.words import count_text, duration_text
from mendflow.pilot.environment import usable_cpus
from mendflow.pilot.memory import machine_bytes
from mendflow.sim.compare import Comparison, Machine, fitted_cost_s, probe_of, simulated


async def compare(path: str, scale: Scale, *, slots: int = 0, seed: int = 0, quiet: bool = False) -> Comparison:
    """Run the trace here with scaled times, and in the simulator, and say what each took."""
    slots = slots or usable_cpus()
    machine = Machine(slots=slots, cpus=float(max(slots, usable_cpus())), memory_bytes=machine_bytes())
    trace = load_trace(path)
    small = probe_of(trace, scale, slots)
    made, probe, first = as_flow(trace, scale), as_flow(small, scale), as_flow(small, replace(scale, time=0.0))
    with tempfile.TemporaryDirectory(prefix="mendflow-compare-") as folder:
        alarm = asyncio.Event()
        async with here(Path(folder), alarm, slots=slots) as crew:
            await _took_s(crew, first.flow, alarm, quiet=True)  # which waits for the pilot
            probe_s = await _took_s(crew, probe.flow, alarm, quiet=True)
            real_s = await _took_s(crew, made.flow, alarm, quiet=quiet)
    cost_s = fitted_cost_s(probe, machine, probe_s)
    return Comparison(
        trace=str(made.flow.name),
        jobs=len(trace.tasks),
        slots=slots,
        scale=scale,
        probe_s=probe_s,
        cost_s=cost_s,
        real_s=real_s,
        simulated_s=simulated(made, machine, cost_s, seed).turnaround_s,
    )


async def _took_s(crew: Crew, flow: Flow, alarm: asyncio.Event, *, quiet: bool) -> float:
    """Run the flow to its end. Raises Conflict if it does not end well."""
    client = crew.client
    await deploy(client, flow)
    case = await client.start(flow.name, {})
    ended = await _ended(client, case, alarm, quiet=quiet)
    if ended is None:
        crew.check()
        raise Conflict(f"the run of {flow.name} was stopped before its end; there is nothing to compare with")
    if ended.status != "completed":
        why = f": {ended.fault.message}" if ended.fault is not None else ""
        raise Conflict(f"the run of {flow.name} {ended.status}{why}; see it by itself with mendflow run")
    assert ended.status in ENDED, "whoever was followed has ended"
    return (ended.ended_at - ended.started_at) / 1000


async def _ended(client: Client, case: CaseView, alarm: asyncio.Event, *, quiet: bool) -> CaseView | None:
    shown = progress(quiet=quiet)
    try:
        return await follow(client, case.id, shown, alarm)
    finally:
        shown.close()


def print_comparison(made: Comparison) -> None:
    say(
        f"{made.trace}: {count_text(made.jobs, 'job')} in {count_text(made.slots, 'slot')}, times x {made.scale.time:g}"
    )
    say(f"  real       {duration_text(round(made.real_s * 1000))}")
    say(f"  simulated  {duration_text(round(made.simulated_s * 1000))} ({made.off:+.1%})")
    say(f"  a job costs {duration_text(round(made.cost_s * 1000))} beside its own time, by a probe")
