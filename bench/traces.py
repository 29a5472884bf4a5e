"""Simulated beside recorded time for traces. `python -m bench.traces FILE... [--write]`.

Each trace is simulated on a slot for each core of the machines that it was recorded on: as it is; with what its own
total tells of the recording system, which is a fit; and with what the other traces of that system tell, without this
one, which is a prediction."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.page import ruled, with_section
from bench.run import ROOT, tell
from mendflow.cli.forecast import ForecastRequest, question_of, recorded_by
from mendflow.formats.wfformat import Scale, Trace, load_trace
from mendflow.pages.formatting import count_text, duration_text
from mendflow.sim.grid.scene import SiteScene
from mendflow.sim.predict import predict
from mendflow.sim.recorded_overheads import SystemOverhead

PAGE = ROOT / "docs" / "understand" / "experiments.md"
TITLE = "Recorded and simulated"
COLUMNS = ("trace", "recorded", "as it is", "fitted", "added to each job", "predicted", "each job, and between two")


class TraceResult(NamedTuple):
    """Parts are of the recorded time. Without another trace of its system nothing is predicted."""

    trace: Trace
    plain: float
    fitted: float
    fit: SystemOverhead
    predicted: float | None
    learned: SystemOverhead | None


def measure(path: Path, others: Sequence[Path]) -> TraceResult:
    trace = load_trace(str(path))
    plain, _ = _part(path, trace)
    fitted, fit = _part(path, trace, as_recorded=True)
    if not others:
        return TraceResult(trace, plain, fitted, fit, None, None)
    predicted, learned = _part(path, trace, like=others)
    return TraceResult(trace, plain, fitted, fit, predicted, learned)


def _part(
    path: Path, trace: Trace, *, as_recorded: bool = False, like: Sequence[Path] = ()
) -> tuple[float, SystemOverhead]:
    """The part of the recorded time that the simulated one is."""
    slots = max(1, trace.machine_cores)
    request = ForecastRequest(
        flow=str(path),
        sites=(SiteScene(name="there", hosts=1, running=1, slots=slots, cpus=float(slots)),),
        seeds=(1,),
        scale=Scale(time=1.0, size=1.0, cores_most=1.0, memory_bytes_most=1),
        as_recorded=as_recorded,
        recorded_like=tuple(map(str, like)),
        what_if=False,
    )
    made, recorded = predict(question_of(request), tell=lambda *_: None), recorded_by(request)
    assert recorded is not None, f"{path} does not say how long it took"
    return made.turnaround_s.mean / recorded.makespan_s, recorded.overhead


def row(path: Path, found: TraceResult) -> tuple[str, ...]:
    trace, learned = found.trace, found.learned
    where = f"{count_text(trace.machines, 'machine')}, {count_text(trace.machine_cores, 'core')}"
    told = f"{path.stem} ({count_text(len(trace.tasks), 'task')}; {trace.system}, {where})"
    both = f"{_time(learned.job_s)}, {_time(learned.gap_s)}" if learned is not None else "-"
    predicted = f"{found.predicted:.2f}" if found.predicted is not None else "-"
    own = _time(found.fit.job_s)
    return (told, _time(trace.makespan_s), f"{found.plain:.2f}", f"{found.fitted:.2f}", own, predicted, both)


def _time(seconds: float) -> str:
    return duration_text(round(seconds * 1000))


def _within(parts: Sequence[float], factor: float) -> int:
    return sum(1 / factor <= part <= factor for part in parts)


def body(rows: Sequence[tuple[str, ...]], found: Sequence[TraceResult], note: str) -> str:
    plain = [each.plain for each in found]
    predicted = [each.predicted for each in found if each.predicted is not None]
    lines = [
        "`python -m bench.traces FILE... --write` makes this section, from traces of",
        "[WfInstances](https://github.com/wfcommons/WfInstances). `mendflow sim TRACE` simulates what the tasks",
        "computed; the system that recorded them also took time for submission, queue and staging. *Fitted* adds what",
        "the trace's own total tells of that (`--as-recorded`): it is near 1 by construction. *Predicted* adds what",
        "the other traces of the same system tell, without this one (`--recorded-like`): so much for each job, and",
        "so long at least between the beginnings of two. Figures are parts of the recorded time.",
        "",
        ruled(COLUMNS, list(rows)),
        "",
        f"As they are, {_within(plain, 1.5)} of {len(plain)} are within a factor of 1.5 of the recorded time, and"
        f" {_within(plain, 2)} within 2; predicted, {_within(predicted, 1.5)} and {_within(predicted, 2)} of"
        f" {len(predicted)}.",
        "What remains is what two constants of a system cannot know: how much was staged, and how busy its queue was.",
        *([note] if note else []),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.traces", description="Simulated beside recorded time.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="FILE", help="traces in WfFormat")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument("--write", action="store_true", help=f"write the section in {PAGE.relative_to(ROOT)}")
    parser.add_argument("--note", default="", help="a sentence for the section's end")
    options = parser.parse_args(arguments)
    systems = {path: load_trace(str(path)).system for path in options.traces}
    rows, found = [], []
    for path, system in sorted(systems.items(), key=lambda pair: (pair[1], pair[0].stem)):
        others = [other for other in systems if other != path and systems[other] == system]
        found.append(measure(path, others))
        rows.append(row(path, found[-1]))
        tell(" | ".join(rows[-1]))
    print(ruled(COLUMNS, rows))
    if options.json:
        numbers = [
            {"trace": path, "plain": each.plain, "fitted": each.fitted, "predicted": each.predicted}
            for (path, *_), each in zip(rows, found, strict=True)
        ]
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(numbers)))
    if options.write:
        PAGE.write_text(with_section(PAGE.read_text(), TITLE, body(rows, found, options.note)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
