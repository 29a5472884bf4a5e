"""Runs every subject in turn, round after round, so that a busy minute of the machine is everybody's.

A subject that is not installed is left out and named. What is shown is the best of the rounds, because noise only ever
makes a system slower."""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import page, table
from bench.results import ENTRIES, BenchReport, Measured, SubjectEntry, Timing
from bench.subject import Kind, Sizes

ROOT = Path(__file__).resolve().parent.parent
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
PATIENCE_S = 300
USUAL = Sizes(python=5000, shell=1000, chain=200)
QUICK = Sizes(python=1000, shell=200, chain=100)


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = [entry for entry in ENTRIES if not options.only or any(word in entry.module for word in options.only)]
    sizes = QUICK if options.quick else USUAL
    measured, left_out = rounds(chosen, sizes, options.rounds, options.peers_python)
    report = BenchReport(
        measured=measured,
        left_out=left_out,
        big={} if options.no_big else run_alone("bench.ours", "big_case", 10_000 if options.quick else 100_000),
        match={} if options.no_match else run_alone("bench.match", "measure", 100_000 if options.quick else 1_000_000),
        rules={} if options.no_rules else run_alone("bench.rules", "measure", 1_000 if options.quick else 10_000),
        proxy={} if options.no_proxy else run_alone("bench.proxy", "measure", 10 if options.quick else 140),
        machine=machine(),
        rounds=options.rounds,
    )
    show(report, options)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure mendflow and its peers in one run.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only subjects with such a module name")
    parser.add_argument("--no-big", action="store_true", help="leave out the case of 100,000 jobs")
    parser.add_argument("--no-match", action="store_true", help="leave out matching among 1,000,000 jobs")
    parser.add_argument("--no-rules", action="store_true", help="leave out conclusions from 10,000 rules")
    parser.add_argument("--no-proxy", action="store_true", help="leave out what recovery costs jobs that do not fail")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument("--write", action="store_true", help="write the beginning of docs/understand/benchmarks.md")
    parser.add_argument(
        "--peers-python", default=os.environ.get("BENCH_PEERS_PYTHON", str(PEERS_PYTHON)), help="who has the peers"
    )
    return parser.parse_args(arguments)


def rounds(
    entries: Sequence[SubjectEntry], sizes: Sizes, count: int, peers_python: str
) -> tuple[Measured, dict[str, str]]:
    """Every round begins with another subject, so that none is always the one after the heaviest."""
    measured: Measured = {}
    left_out: dict[str, str] = {}
    for number in range(count):
        for entry in [*entries[number:], *entries[:number]]:
            if entry.name in left_out:
                continue
            try:
                found = measure(entry, sizes, peers_python)
            except LeftOut as reason:
                left_out[entry.name] = str(reason)
                tell(f"round {number + 1}  {entry.name}: left out, {reason}")
                continue
            for kind, took in found.items():
                measured.setdefault(entry.name, {}).setdefault(kind, []).append(took)
            tell(f"round {number + 1}  {entry.name}: {', '.join(_short(kind, took) for kind, took in found.items())}")
    return measured, left_out


def _short(kind: Kind, took: Timing) -> str:
    return f"{kind} {took.hop_ms:.2f} ms/hop" if kind is Kind.CHAIN else f"{kind} {took.rate:.0f}/s"


class LeftOut(Exception):
    """A subject that could not be measured, and why."""


def measure(entry: SubjectEntry, sizes: Sizes, peers_python: str) -> dict[Kind, Timing]:
    """One run of one subject, in a process group of its own that is gone afterwards."""
    python = peers_python if entry.module.startswith("bench.peers.") and "bare" not in entry.module else sys.executable
    if not Path(python).exists():
        raise LeftOut("its interpreter is not there; run bench/setup_peers.py")
    words = [f"{kind}={sizes.of(kind)}" for kind in Kind]
    code, text = group_failures([python, "-m", entry.module, *words])
    found = [line for line in text.splitlines() if line.startswith("{")]
    if not found:
        raise LeftOut(f"it did not end within {PATIENCE_S} s" if code == -signal.SIGKILL else _reason(text))
    return {Kind(kind): Timing(int(took["jobs"]), took["seconds"]) for kind, took in json.loads(found[-1]).items()}


def _reason(text: str) -> str:
    """The line that tells most: the last that names an error, else the last."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
    return (errors or lines or ["it said nothing"])[-1][:200]


def group_failures(command: Sequence[str]) -> tuple[int, str]:
    """Run a command with a home of its own; whatever it leaves behind is killed, also when we are told to end."""
    with tempfile.TemporaryDirectory(prefix="bench-home-") as home, tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "HOME": home},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        out.seek(0)
        return code, out.read()


def run_alone(module: str, name: str, size: int) -> dict[str, Any]:
    """A measurement of ours that has no counterpart, in a process of its own."""
    tell(f"{module}.{name}({size:,})")
    code, text = group_failures(
        [sys.executable, "-c", f"import json, {module} as m; print(json.dumps(m.{name}({size})))"]
    )
    found = [line for line in text.splitlines() if line.startswith("{")]
    if not found:
        tell(f"failed with {code}: {_reason(text)}")
        return {}
    numbers: dict[str, Any] = json.loads(found[-1])
    return numbers


def machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores ({model}), {system}, Python {platform.python_version()}"


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(report: BenchReport, options: argparse.Namespace) -> None:
    print(table.text(report))
    if options.json:
        options.json.write_text(json.dumps(table.numbers(report), indent=2) + "\n")
    if options.write:
        page.PAGE.write_text(page.with_head(page.PAGE.read_text(), table.page(report)))
