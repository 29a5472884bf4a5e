"""Runs a trace here and in the simulator, to see how well the simulator models this machine.

The real runs use a temporary data folder."""

import asyncio
import tempfile
from pathlib import Path

from mendflow.cli.deployment import with_stored_files
from mendflow.cli.local_cluster import LocalCluster, start_local_cluster
from mendflow.cli.printing import say
from mendflow.cli.progress import follow, progress
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.views import CASE_END_STATES, CaseView
from mendflow.formats.wfformat import Scale, as_flow, load_trace
from mendflow.pages.formatting import count_text, duration_text
from mendflow.pilot.environment import usable_cpus
from mendflow.pilot.slot.memory import machine_bytes
from mendflow.sim.compare import MachineSize, MeasuredTimes, TraceComparison, compare_runs, probe_of
from mendflow.wiring import run as run_loop

WARM_UP = Flow(name=FlowName("warm-up"), body=JobActivity(name="wait", command="true"))
"""The pilot is up once this has ended."""


def compare(path: str, scale: Scale, *, slots: int = 0, seed: int = 0, quiet: bool = False) -> TraceComparison:
    """Run the trace with scaled times here and in the simulator; returns what each took. Raises InvalidRequest for a
    scale under which jobs take no time: only overhead would be compared."""
    if not scale.time > 0:
        raise InvalidRequest("with --scale 0 no job takes any time, and there is nothing to compare; give one above 0")
    slots = slots or usable_cpus()
    machine = MachineSize(slots=slots, cpus=float(max(slots, usable_cpus())), memory_bytes=machine_bytes())
    trace = load_trace(path)
    made, probe = as_flow(trace, scale), as_flow(probe_of(trace, scale, slots), scale)
    # The simulator has its own event loop, so it runs after the other has ended.
    took = run_loop(_measure(made.flow, probe.flow, slots, quiet=quiet))
    return compare_runs(made, probe, machine, took, scale, seed)


async def _measure(flow: Flow, probe: Flow, slots: int, *, quiet: bool) -> MeasuredTimes:
    alarm = asyncio.Event()
    with tempfile.TemporaryDirectory(prefix="mendflow-compare-") as folder:
        async with start_local_cluster(Path(folder), alarm, slots=slots) as cluster:
            await _measure_run_s(cluster, WARM_UP, alarm, quiet=True)
            before_s = await _measure_run_s(cluster, probe, alarm, quiet=True)
            real_s = await _measure_run_s(cluster, flow, alarm, quiet=quiet)
            after_s = await _measure_run_s(cluster, probe, alarm, quiet=True)
    return MeasuredTimes(probes_s=(before_s, after_s), real_s=real_s)


async def _measure_run_s(cluster: LocalCluster, flow: Flow, alarm: asyncio.Event, *, quiet: bool) -> float:
    """Run the flow to its end. Raises Conflict if it does not complete."""
    client = cluster.client
    case = await client.start_with_flow(await with_stored_files(client, flow), {})
    ended = await _follow_to_end(client, case, alarm, quiet=quiet)
    if ended is None:
        cluster.check()
        raise Conflict(f"the run of {flow.name} was stopped before its end; there is nothing to compare with")
    if ended.status != "completed":
        why = f": {ended.fault.message}" if ended.fault is not None else ""
        raise Conflict(f"the run of {flow.name} {ended.status}{why}; see it by itself with mendflow run")
    assert ended.status in CASE_END_STATES, "the followed case has ended"
    return (ended.ended_at - ended.started_at) / 1000


async def _follow_to_end(client: Client, case: CaseView, alarm: asyncio.Event, *, quiet: bool) -> CaseView | None:
    shown = progress(quiet=quiet)
    try:
        return await follow(client, case.id, shown, alarm)
    finally:
        shown.close()


def print_comparison(made: TraceComparison) -> None:
    say(f"{made.trace}: {count_text(made.jobs, 'job')}, {made.slots} at a time, times x {made.scale.time:g}")
    say(f"  real       {duration_text(round(made.real_s * 1000))}")
    say(f"  simulated  {duration_text(round(made.simulated_s * 1000))} ({made.deviation:+.1%})")
    cost = duration_text(round(made.cost_s * 1000))
    say(f"  a job costs {cost} beside its own time, measured by a probe")
    if made.of_costs:
        mean = duration_text(round(made.mean_s * 1000))
        say(f"Of its own time a job takes {mean} on the average, hardly more than it costs; give a larger --scale.")
