"""The one check of the project: `python3 check.py`.

Makes `.venv` from the locked dependencies, then runs format, lint, types and tests, each to its end, and says in one
line each how it went. The exit code is 0 only if all went well."""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.servers import conformance, opensearch, slurm
from tools.environment import ROOT, NotPrepared, prepare

WORKERS = 2
GOODBYE_S = 20
CHAOS_SEEDS_USUAL = 2
CHAOS_SEEDS_FAST = 1


class Stage(NamedTuple):
    """`quiet` stages show their output only when they fail; the others show it as it comes."""

    name: str
    family: str
    command: list[str]
    quiet: bool = True
    nothing_to_do: tuple[int, ...] = ()


class Result(NamedTuple):
    stage: Stage
    ok: bool
    seconds: float


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    started = time.monotonic()
    say(f"mendflow check, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    try:
        programs = prepare("dev")
    except NotPrepared as problem:
        say(f"FAIL  environment  {problem}")
        return 1
    say(f"ok    environment  {time.monotonic() - started:.1f} s")
    wanted = [stage for stage in stages(programs, options) if options.only in ("", stage.family)]
    environ = _environ(programs, options)
    results = [run(stage, environ) for stage in wanted]
    return summary(results, time.monotonic() - started)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check the whole project.")
    parser.add_argument("--fast", action="store_true", help="leave out the end-to-end tests, draw fewer examples")
    parser.add_argument("--only", choices=["lint", "types", "tests"], default="", help="run one family of stages")
    parser.add_argument("--chaos", type=int, metavar="SEEDS", help="how many seeds the kill -9 test goes through")
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="run only the tests that pytest's -k selects")
    return parser.parse_args(arguments)


def stages(programs: Path, options: argparse.Namespace) -> list[Stage]:
    """Tests marked `alone` start and kill real processes and watch the time: they run by themselves, after the rest.
    Those marked `opensearch` or `slurm` need what not every machine has, and have a stage where that is."""
    python = str(programs / "python")
    here = [
        path for path in ("src", "tests", "bench", "tools", "examples", "check.py", "demo.py") if (ROOT / path).exists()
    ]
    typed = [path for path in here if path != "examples"]
    pytest = [python, "-m", "pytest", "--durations", "5", *(["-k", options.k] if options.k else [])]
    none_selected = (5,) if options.k else ()
    together = ["-n", str(WORKERS), "--dist", "worksteal", "-m", "not alone and not opensearch and not slurm"]
    listed = [
        Stage("format", "lint", [python, "-m", "ruff", "format", "--check", *here]),
        Stage("lint", "lint", [python, "-m", "ruff", "check", *here]),
        Stage("types", "types", [python, "-m", "mypy", *typed]),
        Stage("tests", "tests", [*pytest, *together], quiet=False, nothing_to_do=none_selected),
    ]
    if not options.fast:
        alone = [*pytest, "-m", "alone and not opensearch and not slurm"]
        listed.append(Stage("tests alone", "tests", alone, quiet=False, nothing_to_do=none_selected))
    if not options.fast and not options.k and possible("bpel", conformance.lacking()):
        listed.append(Stage("bpel", "tests", [python, "-m", "tests.servers.conformance"], quiet=False))
    if not options.fast and possible("opensearch", opensearch.lacking()):
        listed.append(Stage("fetch nodes", "tests", [python, "-m", "tests.servers.opensearch"]))
        real = [*pytest, "-n", str(WORKERS), "--dist", "loadfile", "--timeout", "300", "-m", "opensearch"]
        listed.append(Stage("opensearch", "tests", real, quiet=False, nothing_to_do=none_selected))
    if not options.fast and possible("slurm", slurm.lacking()):
        batch = [*pytest, "--timeout", "300", "-m", "slurm"]
        listed.append(Stage("slurm", "tests", batch, quiet=False, nothing_to_do=none_selected))
    return listed


def possible(stage: str, lacking: str) -> bool:
    """Whether a stage can run here; if not, say so: what is left out should not look like what went well."""
    if lacking:
        say(f"left out  {stage}: this machine lacks {lacking}")
    return not lacking


def _environ(programs: Path, options: argparse.Namespace) -> dict[str, str]:
    usual = CHAOS_SEEDS_FAST if options.fast else CHAOS_SEEDS_USUAL
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}",
        "MENDFLOW_CHAOS_SEEDS": str(usual if options.chaos is None else options.chaos),
        "MENDFLOW_TEST_PROFILE": "fast" if options.fast else "usual",
    }


def run(stage: Stage, environ: dict[str, str]) -> Result:
    started = time.monotonic()
    code, printed = watched(stage, environ)
    ok = code == 0 or code in stage.nothing_to_do
    if not ok and printed:
        say(printed)
    result = Result(stage, ok, time.monotonic() - started)
    say(line(result))
    return result


def watched(stage: Stage, environ: dict[str, str]) -> tuple[int, str]:
    """Run to the end. If we are told to end first, the tool gets the time to end what it has started."""
    out = subprocess.PIPE if stage.quiet else None
    errors = subprocess.STDOUT if stage.quiet else None
    with subprocess.Popen(stage.command, cwd=ROOT, env=environ, stdout=out, stderr=errors, text=True) as process:
        try:
            printed, _ = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GOODBYE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return process.returncode, printed or ""


def line(result: Result) -> str:
    return f"{'ok  ' if result.ok else 'FAIL'}  {result.stage.name:<11}  {result.seconds:.1f} s"


def summary(results: Sequence[Result], seconds: float) -> int:
    failed = [result for result in results if not result.ok]
    say(f"\n{len(results) - len(failed)} of {len(results)} stages passed in {seconds:.0f} s")
    for result in failed:
        say(f"{line(result)}\n      again: {' '.join(result.stage.command)}")
    return 1 if failed else 0


def say(text: str) -> None:
    """Flushed, so that our lines stand among those of the tools in the order in which things happened."""
    print(text, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
