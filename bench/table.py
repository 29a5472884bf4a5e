"""What was measured, for eyes: as text, as a page, as numbers."""

from collections.abc import Sequence

from bench.results import ENTRIES, BenchReport, Timing
from bench.subject import Kind

COLUMNS = ("system", "Python jobs/s", "shell jobs/s", "chain ms/hop", "a crash of all loses")
MB = 1 << 20


def best(took: Sequence[Timing]) -> Timing:
    return max(took, key=lambda one: one.rate)


def rows(report: BenchReport) -> list[tuple[str, ...]]:
    return [
        (
            entry.name,
            _cell(report, entry.name, Kind.PYTHON),
            _cell(report, entry.name, Kind.SHELL),
            _cell(report, entry.name, Kind.CHAIN),
            entry.durable,
        )
        for entry in ENTRIES
        if entry.name in report.measured
    ]


def _cell(report: BenchReport, name: str, kind: Kind) -> str:
    took = report.measured.get(name, {}).get(kind)
    if not took:
        return "-"
    return f"{best(took).hop_ms:.2f}" if kind is Kind.CHAIN else f"{best(took).rate:,.0f}"


def compared(report: BenchReport) -> list[str]:
    """mendflow beside each of the others, as factors."""
    ours = report.measured.get("mendflow", {})
    lines = []
    for name, theirs in report.measured.items():
        kinds = [kind for kind in Kind if kind in theirs and kind in ours and name != "mendflow"]
        factors = [f"{kind} {best(ours[kind]).rate / best(theirs[kind]).rate:.2f} x" for kind in kinds]
        if factors:
            lines.append(f"mendflow / {name}: {', '.join(factors)}")
    return lines


def standalone_rows(report: BenchReport) -> list[str]:
    """The measurements that have no counterpart."""
    lines = []
    if report.big:
        peak = report.big["server_peak_bytes"] / MB
        rate = report.big["jobs"] / report.big["seconds"]
        lines.append(
            f"{report.big['jobs']:,.0f} Python jobs in one case: {report.big['seconds']:.1f} s ({rate:,.0f}/s), "
            f"server's peak memory {peak:,.0f} MB"
        )
    if report.match:
        lines.append(
            f"match among {report.match['jobs_waiting']:,} waiting jobs: 99th percentile {report.match['p99_ms']} ms "
            "in the worst of the scenes"
        )
    if report.rules:
        lines.append(
            f"conclusions from a tree of {report.rules['rules']:,} rules: {report.rules['per_s']:,}/s on one core, "
            "trail included, in the slowest shape that need not ask every rule"
        )
    if report.proxy:
        lines.append(
            f"what recovery costs jobs that do not fail: {report.proxy['cost']:.1%} of the throughput, "
            f"{report.proxy['cost_cpu']:.1%} of the processor's time"
        )
    return lines


def text(report: BenchReport) -> str:
    cells = [COLUMNS, *rows(report)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(COLUMNS))]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    missing = [f"left out: {name}: {reason}" for name, reason in report.left_out.items()]
    told = f"best of {report.rounds} rounds on {report.machine}"
    return "\n".join([*lines, "", told, "", *compared(report), "", *standalone_rows(report), *missing])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers, last = [cell for cell in row]
    middle = [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
    return "  ".join([first.ljust(widths[0]), *middle, last]).rstrip()


def page(report: BenchReport) -> str:
    """The beginning of docs/understand/benchmarks.md."""
    ruled = ["|".join(["", *COLUMNS, ""]), "|---|--:|--:|--:|---|", *("|".join(["", *row, ""]) for row in rows(report))]
    missing = [f"- Left out: {name} ({reason})" for name, reason in report.left_out.items()]
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "`python -m bench --write` made this page. Every system ran in turn, round after round, on the same",
            f"machine with two workers and over loopback; shown is the best of {report.rounds} rounds.",
            "A job does nothing, so what is measured is everything around it.",
            "",
            f"Machine: {report.machine}.",
            "",
            *ruled,
            "",
            *(f"- {line}" for line in standalone_rows(report)),
            *missing,
            "",
            "Python jobs and shell jobs are independent of each other; a chain is 200 jobs of which each takes the",
            "result of the one before. mendflow has every accepted result on disk, with full sync, before anybody is",
            "told of it. The last column says what is lost when all processes of a system die at once.",
            "",
            "`python3 bench/setup_peers.py` installs the other systems into `.venv-peers`; Redis comes from the",
            "machine's own packages. What is not there is left out.",
            "",
        ]
    )


def numbers(report: BenchReport) -> dict[str, object]:
    measured = {
        name: {str(kind): [took._asdict() for took in all_took] for kind, all_took in kinds.items()}
        for name, kinds in report.measured.items()
    }
    return {**report._asdict(), "measured": measured}
