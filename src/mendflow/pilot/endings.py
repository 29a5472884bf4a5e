"""How attempts end that did not end as a shell command does: calls of functions, and what never started."""

import time

import msgspec

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import Measures, Outcome
from mendflow.pilot.processes import Reaper
from mendflow.pilot.shell import missing_files
from mendflow.pilot.verdicts import End, died, stopped
from mendflow.pilot.watch import Watch
from mendflow.pilot.wire import Done, FromWorker, Work

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Outcome)


def failed(work: Work, fault: Fault, measures: Measures | None = None, ran_us: int = 1) -> Done:
    now = time.time_ns() // 1_000_000
    measures = measures or Measures(started_at=now, ended_at=now)
    outcome = Outcome(fault=fault, exit_code=fault.exit_code, log_tail=fault.log_tail, measures=measures)
    return Done(work.job, work.fence, msgspec.Raw(_ENCODER.encode(outcome)), max(ran_us, 1), {}, [], work.own_folder)


def never_started(work: Work, end: End) -> Done:
    return failed(work, stopped(end, wall_ms=0, memory_bytes=0, peak_bytes=0))


def returned(work: Work, result: FromWorker, *, folder: str, cut_bytes: int, peak_bytes: int) -> Done:
    """A call that came back. Its outcome is only opened if there is something to add or to check."""
    outcome, files, spills = result.outcome, work.files, result.spills
    if files or cut_bytes or peak_bytes:
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
        outcome = msgspec.Raw(_ENCODER.encode(seen))
    kept = bool(work.own_folder or files or spills)
    return Done(work.job, work.fence, outcome, max(result.ran_us, 1), files, spills, kept)


def crashed(work: Work, watch: Watch, reaper: Reaper, status: int, *, tail: str, log_bytes: int, folder: str) -> Done:
    """A call whose worker died: because the slot ended it, or by the function's own doing."""
    end = End.CANCELLED if watch.end is None and watch.cancelling else watch.end
    peak = max(watch.peak_bytes, reaper.peak_bytes)
    if end is not None:
        fault = stopped(end, wall_ms=work.wall_ms, memory_bytes=work.memory_bytes, peak_bytes=peak)
    else:
        text = "the function ended its whole process with exit code 0"
        well = Fault(name="exitCode", category=Category.JOB, message=text, exit_code=0)
        fault = died(status, folder) or well
    measures = Measures(
        started_at=watch.started_at,
        ended_at=time.time_ns() // 1_000_000,
        cpu_ms=reaper.cpu_ms(),
        peak_bytes=peak,
        stdout_bytes=log_bytes,
    )
    return failed(work, msgspec.structs.replace(fault, log_tail=tail), measures, watch.ran_us())
