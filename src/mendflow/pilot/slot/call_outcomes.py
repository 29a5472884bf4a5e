"""Outcomes of attempts other than shell commands: function calls, and attempts that never started."""

import time
from collections.abc import Callable

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.values import Value
from mendflow.pilot.slot.confining import outside
from mendflow.pilot.slot.declared_outputs import find_outputs
from mendflow.pilot.slot.faults import StopReason, exit_fault, stop_fault
from mendflow.pilot.slot.memory import OutOfMemoryKills
from mendflow.pilot.slot.messages import FileList, FinishedAttempt, RawCallResult, SlotWork
from mendflow.pilot.slot.monitor import AttemptMonitor
from mendflow.pilot.slot.processes import Reaper
from mendflow.pilot.slot.reports import ReportReader
from mendflow.pilot.slot.secret_masking import mask_file, mask_kept

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Outcome)
_NOTHING: dict[str, Value] = {}


def failed_attempt(
    work: SlotWork,
    fault: Fault,
    measures: Measurements | None = None,
    values: dict[str, Value] = _NOTHING,
    ran_us: int = 1,
    *,
    is_long: bool = False,
    kept: str = "",
) -> FinishedAttempt:
    """`is_long`: its log is to be stored; `kept` is its folder, if that is kept."""
    now = time.time_ns() // 1_000_000
    measures = measures or Measurements(started_at=now, ended_at=now)
    outcome = Outcome(
        fault=fault,
        exit_code=fault.exit_code,
        log_tail=fault.log_tail,
        measures=measures,
        values=values,
        folder=kept,
    )
    return FinishedAttempt(
        work.job,
        work.fence,
        msgspec.Raw(_ENCODER.encode(outcome)),
        max(ran_us, 1),
        folder=work.own_folder or is_long or bool(kept),
        staging_measures=work.staging_measures,
        log=is_long,
        kept=bool(kept),
    )


def with_folder(done: FinishedAttempt) -> FinishedAttempt:
    """The same, with a folder that is to be removed."""
    return msgspec.structs.replace(done, folder=True)


def unstarted_attempt(work: SlotWork, end: StopReason) -> FinishedAttempt:
    fault = stop_fault(end, wall_ms=0, memory_bytes=0, peak_bytes=0)
    return failed_attempt(work, msgspec.structs.replace(fault, stage=AttemptStage.START))


def finished_call(
    work: SlotWork,
    result: RawCallResult,
    monitor: AttemptMonitor | None,
    *,
    folder: str,
    cut_bytes: int,
    keep_folder: Callable[[SlotWork, Fault], str],
    is_confined: bool = False,
) -> FinishedAttempt:
    """A call that came back. Its outcome is only opened if there is something to add or to check. `monitor` is what it
    was watched with, if that was long enough to see anything. One that `is_confined` could not keep its folder itself,
    and is not believed where its files are."""
    outcome, files, lists, spills = result.outcome, work.files, dict[str, FileList](), result.spills
    kept, contents = result.kept, result.contents
    peak_bytes = monitor.peak_bytes if monitor is not None else 0
    reports = monitor.reports if monitor is not None else None
    if files or cut_bytes or peak_bytes or result.report or reports is not None or is_confined:
        seen = _DECODER.decode(outcome)
        measures = msgspec.structs.replace(
            seen.measures,
            printed_bytes=seen.measures.printed_bytes + cut_bytes,
            peak_bytes=max(seen.measures.peak_bytes, peak_bytes),
        )
        fault = seen.fault
        if fault is None:
            files, lists, fault = find_outputs(files, folder, work.file_lists, work.inputs)
            if fault is None and is_confined and (elsewhere := outside(folder, (*spills, *contents))):
                fault = _foreign_files(elsewhere)
        if fault is not None:
            files, lists, spills, contents = {}, {}, [], []
        if fault is not None and (seen.fault is None or is_confined):
            seen = msgspec.structs.replace(seen, folder=keep_folder(work, fault))
            kept = bool(seen.folder)
        outputs = seen.outputs if fault is None else None
        seen = msgspec.structs.replace(seen, measures=measures, fault=fault, outputs=outputs)
        seen = seen if fault is None else msgspec.structs.replace(seen, contents=())
        if result.report or reports is not None:
            seen = _with_report(seen, result.report, reports or ReportReader(""))
        outcome = msgspec.Raw(_ENCODER.encode(seen))
    return FinishedAttempt(
        work.job,
        work.fence,
        outcome,
        max(result.ran_us, 1),
        files,
        spills,
        bool(work.own_folder or files or lists or spills or contents or result.log or kept or is_confined),
        work.publish,
        work.staging_measures,
        lists,
        log=result.log,
        kept=kept,
        contents=contents,
    )


def _foreign_files(paths: list[str]) -> Fault:
    text = f"what its result refers to is not in the job's folder: {paths[0][:200]}"
    return Fault(name="badOutput", category=Category.OUTPUT, message=text, stage=AttemptStage.STAGE_OUT)


def _with_report(outcome: Outcome, report: bytes, reports: ReportReader) -> Outcome:
    reports.take_all(report)
    tail = outcome.log_tail + reports.complaint().decode()
    fault = outcome.fault and msgspec.structs.replace(outcome.fault, log_tail=tail)
    return msgspec.structs.replace(outcome, values=reports.values, log_tail=tail, fault=fault)


def crashed_call(
    monitor: AttemptMonitor,
    reaper: Reaper,
    kernel: OutOfMemoryKills,
    status: int,
    *,
    log: bytes,
    printed_bytes: int,
    is_long: bool,
    folder: str,
    keep_folder: Callable[[SlotWork, Fault], str],
) -> FinishedAttempt:
    """The outcome of a call whose worker died: killed by the slot, or ended by the function itself."""
    work = monitor.work
    end = monitor.end
    ran_us, peak = monitor.ran_us(), max(monitor.peak_bytes, reaper.peak_bytes)
    measures = Measurements(
        started_at=monitor.started_at,
        ended_at=time.time_ns() // 1_000_000,
        cpu_ms=reaper.cpu_ms(),
        read_bytes=reaper.read_bytes,
        written_bytes=reaper.written_bytes,
        peak_bytes=peak,
        ran_ms=ran_us // 1000,
        printed_bytes=printed_bytes,
    )
    limit = work.memory_bytes
    if end is not None:
        fault = stop_fault(end, wall_ms=work.wall_ms, memory_bytes=limit, peak_bytes=peak, ran_ms=ran_us // 1000)
    else:
        killed = kernel.look()
        fault = exit_fault(status, folder, memory_bytes=limit, peak_bytes=peak, kernel_kill=killed) or _left_well()
    values, complaint = _NOTHING, b""
    if monitor.reports is not None:
        values, complaint = monitor.reports.values, monitor.reports.complaint()
    fault = msgspec.structs.replace(fault, log_tail=(log + complaint).decode(errors="replace"))
    return failed_attempt(work, fault, measures, values, ran_us, is_long=is_long, kept=keep_folder(work, fault))


def _left_well() -> Fault:
    text = "the function ended its whole process with exit code 0"
    return Fault(name="exitCode", category=Category.JOB, message=text, exit_code=0, stage=AttemptStage.EXECUTION)


def masked_attempt(work: SlotWork, done: FinishedAttempt, log: str) -> FinishedAttempt:
    """The same without the secrets of the attempt: in its outcome, and in its log, if that is at its place."""
    if not work.secrets:
        return done
    mask = work.secrets.mask()
    if done.log:
        mask_file(log, mask)
    if done.kept:
        mask_kept(log.removesuffix(".log"), mask)
    outcome = mask.mask_outcome(_DECODER.decode(done.outcome))
    return msgspec.structs.replace(done, outcome=msgspec.Raw(_ENCODER.encode(outcome)))
