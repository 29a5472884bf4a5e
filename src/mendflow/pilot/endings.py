"""How attempts end that did not end as a shell command does: calls of functions, and what never started."""

import time

import msgspec

from mendflow.core.model.faults import Category, Fault, Stage
from mendflow.core.model.jobs import Measures, Outcome
from mendflow.core.model.values import Value
from mendflow.pilot.memory import KernelKills
from mendflow.pilot.processes import Reaper
from mendflow.pilot.promised import missing_files
from mendflow.pilot.reports import Reports
from mendflow.pilot.verdicts import End, died, stopped
from mendflow.pilot.watch import Watch
from mendflow.pilot.wire import Done, FromWorker, Work

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Outcome)
_NOTHING: dict[str, Value] = {}


def failed(
    work: Work, fault: Fault, measures: Measures | None = None, values: dict[str, Value] = _NOTHING, ran_us: int = 1
) -> Done:
    now = time.time_ns() // 1_000_000
    measures = measures or Measures(started_at=now, ended_at=now)
    outcome = Outcome(fault=fault, exit_code=fault.exit_code, log_tail=fault.log_tail, measures=measures, values=values)
    encoded = msgspec.Raw(_ENCODER.encode(outcome))
    return Done(work.job, work.fence, encoded, max(ran_us, 1), {}, [], work.own_folder, {}, work.brought)


def never_started(work: Work, end: End) -> Done:
    fault = stopped(end, wall_ms=0, memory_bytes=0, peak_bytes=0)
    return failed(work, msgspec.structs.replace(fault, stage=Stage.START))


def returned(work: Work, result: FromWorker, watch: Watch | None, *, folder: str, cut_bytes: int) -> Done:
    """A call that came back. Its outcome is only opened if there is something to add or to check. `watch` is what it
    was watched with, if that was long enough to see anything."""
    outcome, files, spills = result.outcome, work.files, result.spills
    peak_bytes = watch.peak_bytes if watch is not None else 0
    if files or cut_bytes or peak_bytes or result.report:
        seen = _DECODER.decode(outcome)
        measures = msgspec.structs.replace(
            seen.measures,
            stdout_bytes=seen.measures.stdout_bytes + cut_bytes,
            peak_bytes=max(seen.measures.peak_bytes, peak_bytes),
        )
        fault = seen.fault or missing_files(files, folder)
        if fault is not None:
            files, spills = {}, []
        outputs = seen.outputs if fault is None else None
        seen = msgspec.structs.replace(seen, measures=measures, fault=fault, outputs=outputs)
        if result.report:
            seen = _with_report(seen, result.report, watch)
        outcome = msgspec.Raw(_ENCODER.encode(seen))
    kept = bool(work.own_folder or files or spills)
    ran_us = max(result.ran_us, 1)
    return Done(work.job, work.fence, outcome, ran_us, files, spills, kept, work.publish, work.brought)


def _with_report(outcome: Outcome, report: bytes, watch: Watch | None) -> Outcome:
    reports = watch.reports if watch is not None and watch.reports is not None else Reports("")
    reports.take_all(report)
    tail = outcome.log_tail + reports.complaint().decode()
    fault = outcome.fault and msgspec.structs.replace(outcome.fault, log_tail=tail)
    return msgspec.structs.replace(outcome, values=reports.values, log_tail=tail, fault=fault)


def crashed(
    watch: Watch, reaper: Reaper, kernel: KernelKills, status: int, *, log: bytes, cut_bytes: int, folder: str
) -> Done:
    """A call whose worker died: because the slot ended it, or by the function's own doing."""
    work = watch.work
    end = watch.end
    ran_us, peak = watch.ran_us(), max(watch.peak_bytes, reaper.peak_bytes)
    measures = Measures(
        started_at=watch.started_at,
        ended_at=time.time_ns() // 1_000_000,
        cpu_ms=reaper.cpu_ms(),
        peak_bytes=peak,
        ran_ms=ran_us // 1000,
        stdout_bytes=len(log) + cut_bytes,
    )
    limit = work.memory_bytes
    if end is not None:
        fault = stopped(end, wall_ms=work.wall_ms, memory_bytes=limit, peak_bytes=peak, ran_ms=ran_us // 1000)
    else:
        killed = kernel.look()
        fault = died(status, folder, memory_bytes=limit, peak_bytes=peak, kernel_kill=killed) or _left_well()
    fault = msgspec.structs.replace(fault, log_tail=log.decode(errors="replace"))
    values = watch.reports.values if watch.reports is not None else _NOTHING
    return failed(work, fault, measures, values, ran_us)


def _left_well() -> Fault:
    text = "the function ended its whole process with exit code 0"
    return Fault(name="exitCode", category=Category.JOB, message=text, exit_code=0, stage=Stage.EXECUTION)
