"""The one check of the project: `python3 check.py`, and `python3 check.py --full` for all of it.

Makes `.venv` from the locked dependencies, then runs format, lint, types and tests, each to its end, and says in a
table how each went. The exit code is 0 only if all went well. What is quiet runs beside the tests, which wait a good
deal. In the full check, tests that failed are run once more, by themselves, when all else has ended.
docs/understand/check.md tells what is in each stage and what it takes."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.marked import APART, SERVERS, WHOLLY_APART, files_with
from tests.servers import bpel_suite, chromium, genomics, gridengine, isolation, ode, opensearch, openssh, podman, slurm
from tools.environment import ROOT, NotPrepared, prepare
from tools.second_run import LIST, PLUGIN, UNSTEADY_MAX, ListedTests, read_list, refusal, steady_now

WORKERS = 4
"""Twice the cores that we count on: many tests wait for a process or for a lease to end."""

WAITING_WORKERS = 6
"""Six of its tests use most of two cores, and next to nothing else runs then."""

QUIET_AT_ONCE = 3
"""With these the processors are in use all the time, and the quiet stages are over when the stage waiting begins, whose
tests go by the clock."""

GOODBYE_S = 20
CHAOS_SEEDS = 2
PASSED = re.compile(rb"(\d+) passed")
TOLD = re.compile(rb"^told: (.*)$", re.MULTILINE)
"""What a quiet stage says in the table's stead: numbers that somebody wants to see though all went well."""

TAIL_BYTES = 4000


class Stage(NamedTuple):
    """`quiet` stages show their output only when they fail, and run three at a time beside the others; these show it
    as it comes. One that is `alone` begins when all others have ended, and a quiet one that `follows` when the one
    before it in the list has. `again` is the command that runs single tests of the stage, whose names follow, once
    more; empty if none are."""

    name: str
    family: str
    command: list[str]
    quiet: bool = True
    alone: bool = False
    follows: bool = False
    nothing_to_do: tuple[int, ...] = ()
    again: tuple[str, ...] = ()


class Result(NamedTuple):
    """`failed` are tests that are worth a second run, `unsteady` those that have passed it. `processor_s` is what all
    its processes used, but for those that had left their family: two stages at a time take longer, not more."""

    stage: Stage
    ok: bool
    seconds: float
    tests: int = 0
    failed: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    processor_s: float = 0.0


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    started = time.monotonic()
    try:
        programs = prepare("dev")
    except NotPrepared as problem:
        say(f"FAIL  environment  {problem}")
        return 1
    say(f"mendflow check, {python_of(programs)}, {os.cpu_count()} cores")
    made = Result(Stage("environment", "", []), True, time.monotonic() - started)
    say(line(made))
    wanted = [stage for stage in stages(programs, options) if options.only in ("", stage.family)]
    runs = Runs(environ(programs, options))
    results = runs.again(runs.all(wanted))
    return summary([made, *results], time.monotonic() - started)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check the project: what a change needs, or all of it.")
    parser.add_argument("--full", action="store_true", help="run every test there is, with real servers and kill -9")
    parser.add_argument("--only", choices=["lint", "types", "tests"], default="", help="run one family of stages")
    parser.add_argument("--chaos", type=int, metavar="SEEDS", help="how many seeds the kill -9 test goes through")
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="run only the tests that pytest's -k selects")
    return parser.parse_args(arguments)


def stages(programs: Path, options: argparse.Namespace) -> list[Stage]:
    """The short check has one stage of tests, all but those marked `full`, and a walk through the web app where it can
    be shown. The full one has all tests, and those that wait, that want the machine for themselves, or that need what
    not every machine has, in stages of their own."""
    python = str(programs / "python")
    folders = ("src", "tests", "bench", "experiments", "tools", "examples", "check.py", "demo.py")
    here = [path for path in folders if (ROOT / path).exists()]
    typed = [path for path in here if path != "examples"]
    listed = [
        Stage("format", "lint", [python, "-m", "ruff", "format", "--check", *here]),
        Stage("lint", "lint", [python, "-m", "ruff", "check", *here]),
        Stage("types", "types", [python, "-m", "mypy", *typed]),
    ]
    of_tests = Tests(python, options.k, options.full)
    if not options.full:
        listed.append(of_tests.stage("tests", f"not full and {_none_of(*SERVERS)}", WORKERS))
        return [*listed, *([of_tests.stage("web", "web and short", 1, "tests/web")] if short_walk() else [])]
    return [*listed, *full_stages(of_tests, python, options)]


class Tests(NamedTuple):
    """How a share of the tests is run. `twice`: those that fail are run once more."""

    python: str
    k: str
    twice: bool = False

    def stage(self, name: str, marked: str, workers: int, *more: str, quiet: bool = False) -> Stage:
        chosen = ["-m", marked, *(["-k", self.k] if self.k else [])]
        spread = ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
        begin = (self.python, "-m", "pytest", *(PLUGIN if self.twice else ()))
        command = [*begin, "--durations", "10", *spread, *more, *chosen]
        again = (*begin, "--timeout", "600") if self.twice else ()
        nothing_to_do = (5,) if self.k else ()
        return Stage(name, "tests", command, quiet, name == "alone", nothing_to_do=nothing_to_do, again=again)

    def apart(self, mark: str, workers: int, *more: str, quiet: bool = False) -> Stage:
        """The stage of a mark. It reads only the files that have such tests: to read all takes each of its processes
        seconds."""
        marked = " and ".join([mark, *(f"not {each}" for each in APART[APART.index(mark) + 1 :])])
        files = [str(path.relative_to(ROOT)) for path in files_with(mark)]
        return self.stage(mark, marked, workers, *more, *files, quiet=quiet)


def full_stages(of_tests: Tests, python: str, options: argparse.Namespace) -> list[Stage]:
    """The stages opensearch, slurm, ode, gridengine, openssh, podman, isolation, genomics and web wait a good deal:
    quiet, they run beside those that use the processors. Those that take longest begin first, so that no single one is
    left at the end."""
    listed = [
        of_tests.stage("tests", _none_of(*APART), WORKERS, *(f"--ignore={folder}" for folder in WHOLLY_APART)),
        of_tests.apart("waiting", WAITING_WORKERS),
        of_tests.apart("alone", 1),
    ]
    if possible("web", chromium.lacking()):
        npm = shutil.which("npm") is not None
        if npm:
            listed.append(Stage("build web", "tests", [python, "tools/build_web.py"]))
        listed.append(of_tests.apart("web", 1, quiet=True)._replace(follows=npm))
        if npm and not options.k:
            listed.append(Stage("web app", "lint", [python, "tools/build_web.py", "--check"], follows=True))
    if possible("opensearch", opensearch.lacking()):
        listed.append(Stage("fetch nodes", "tests", [python, "-m", "tests.servers.opensearch"]))
        nodes = of_tests.apart("opensearch", 1, "--timeout", "600", quiet=True)  # a second process has a second node
        listed.append(nodes._replace(follows=True))
    if possible("slurm", slurm.lacking()):
        listed.append(of_tests.apart("slurm", 1, quiet=True))
    if not options.k:
        listed.append(Stage("fuzz", "tests", [python, "-m", "tests.fuzz"]))
    for name, server in (
        ("ode", ode),
        ("podman", podman),
        ("gridengine", gridengine),
        ("openssh", openssh),
        ("isolation", isolation),
        ("genomics", genomics),
    ):
        if possible(name, server.lacking()):
            listed.append(of_tests.apart(name, 1, quiet=True))
    if not options.k and possible("bpel", bpel_suite.lacking()):
        listed.append(Stage("bpel", "tests", [python, "-m", "tests.servers.conformance"]))
    listed.append(Stage("docs", "lint", [python, "-m", "mkdocs", "build", "--strict"]))
    return listed


def short_walk() -> bool:
    """Whether the short check walks through the web app: where it is built, and a browser is there."""
    return not chromium.lacking() and chromium.is_built()


def python_of(programs: Path) -> str:
    """Which Python the environment has; it need not be the one that runs this program."""
    asked = "import sys; print('Python', sys.version.split()[0], 'of', sys.base_prefix)"
    return subprocess.run([programs / "python", "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def _none_of(*marks: str) -> str:
    return " and ".join(f"not {mark}" for mark in marks)


def possible(stage: str, lacking: str) -> bool:
    """Whether a stage can run here; if not, say so: what is left out should not look like what went well."""
    if lacking:
        say(f"left out  {stage}: this machine lacks {lacking}")
    return not lacking


def environ(programs: Path, options: argparse.Namespace) -> dict[str, str]:
    """Python may write its bytecode: each of some thousand processes would else compile what it loads anew."""
    passed_on = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **passed_on,
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}",
        "MENDFLOW_CHAOS_SEEDS": str(CHAOS_SEEDS if options.chaos is None else options.chaos),
        "MENDFLOW_TEST_PROFILE": "usual" if options.full else "short",
    }


class Ended(NamedTuple):
    """What came of a stage's command; of a loud one `printed` is the last of it."""

    code: int
    printed: bytes
    processor_s: float
    listed: ListedTests | None = None


class Runs:
    """Runs stages: the quiet ones three at a time beside those that show what they do, then those that want the
    machine for themselves, and at last the tests that are worth a second run."""

    def __init__(self, environ: dict[str, str], folder: Path = ROOT) -> None:
        self._environ = environ
        self._folder = folder
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()

    def all(self, stages: Sequence[Stage]) -> list[Result]:
        with ThreadPoolExecutor(QUIET_AT_ONCE) as beside:
            try:
                quiet = [beside.submit(self._each, row) for row in quiet_rows(stages)]
                loud = self._each([stage for stage in stages if not stage.quiet and not stage.alone])
                ended = [result for each in quiet for result in each.result()]
                return [*ended, *loud, *self._each([stage for stage in stages if stage.alone])]
            except BaseException:
                self._stop()
                raise

    def _each(self, stages: Sequence[Stage]) -> list[Result]:
        return [self.one(stage) for stage in stages if not self._stopped.is_set()]

    def again(self, results: Sequence[Result]) -> list[Result]:
        """Run the failed tests of each stage once more, by themselves; a stage all of whose tests pass then is no
        failure, and they are unsteady."""
        return [self._again(result) if result.failed else result for result in results]

    def _again(self, result: Result) -> Result:
        wanted = result.failed
        say(f"\nonce more, by themselves, of {result.stage.name}: {', '.join(wanted)}")
        stage = Stage("once more", "tests", [*result.stage.again, *wanted], quiet=False, again=result.stage.again)
        listed = self._run(stage).listed
        unsteady = tuple(steady_now(wanted, listed))
        return result._replace(ok=len(unsteady) == len(wanted), unsteady=unsteady)

    def one(self, stage: Stage) -> Result:
        started = time.monotonic()
        code, printed, processor_s, listed = self._run(stage)
        ok = code == 0 or code in stage.nothing_to_do
        if stage.quiet and not ok and not self._stopped.is_set():
            say(printed.decode(errors="replace"))
        counted = PASSED.findall(printed) if stage.family == "tests" else []
        seconds, tests = time.monotonic() - started, int(counted[-1]) if counted else 0
        result = Result(stage, ok, seconds, tests, processor_s=processor_s)
        if stage.again and not ok:
            why = refusal(code, listed)
            say(
                f"no second run of {stage.name}: {why}"
                if why
                else f"{stage.name}: what failed is run once more at the end"
            )
            result = result._replace(failed=() if why or listed is None else listed.failed)
        for told in TOLD.findall(printed) if stage.quiet and ok else ():
            say(f"      {stage.name}: {told.decode(errors='replace')}")
        say(line(result))
        return result

    def _run(self, stage: Stage) -> Ended:
        """Run to the end; also which tests failed, if the stage tells."""
        with tempfile.TemporaryDirectory(prefix="mendflow-check-") as folder:
            path = Path(folder, "tests.json")
            ended = self._watched(stage, {**self._environ, LIST: str(path)} if stage.again else self._environ)
            return ended._replace(listed=read_list(path))

    def _watched(self, stage: Stage, environ: dict[str, str]) -> Ended:
        process = subprocess.Popen(
            stage.command, cwd=self._folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._running.add(process)
        assert process.stdout is not None
        printed = b""
        with process.stdout as out:
            while part := os.read(out.fileno(), 65536):
                printed += part
                if not stage.quiet:
                    sys.stdout.buffer.write(part)
                    sys.stdout.flush()
                    printed = printed[-TAIL_BYTES:]
        processor_s = 0.0
        try:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode, processor_s = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        except ChildProcessError:  # whoever stops it has waited for it
            process.wait()
        self._running.discard(process)
        return Ended(process.returncode, printed, processor_s)

    def _stop(self) -> None:
        """We are told to end: the tools get the time to end what they have started."""
        self._stopped.set()
        for process in list(self._running):
            process.send_signal(signal.SIGINT)
        for process in list(self._running):
            try:
                process.wait(GOODBYE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def quiet_rows(stages: Sequence[Stage]) -> list[list[Stage]]:
    """The quiet stages: those that follow another, in a row with it."""
    rows: list[list[Stage]] = []
    for stage in stages:
        if stage.quiet and stage.follows and rows:
            rows[-1].append(stage)
        elif stage.quiet:
            rows.append([stage])
    return rows


def line(result: Result) -> str:
    used = f"  {result.processor_s:>6.0f} s of processor" if result.processor_s else ""
    tests = f"  {result.tests:>5} tests" if result.tests else ""
    unsteady = f"  {len(result.unsteady)} unsteady" if result.unsteady else ""
    return (
        f"{'ok  ' if result.ok else 'FAIL'}  {result.stage.name:<11}  {result.seconds:>6.1f} s{used}{tests}{unsteady}"
    )


def summary(results: Sequence[Result], seconds: float) -> int:
    """The table of what was run, what was unsteady, and how to run again what failed."""
    failed = [result for result in results if not result.ok]
    say("\n" + "\n".join(line(result) for result in results))
    say(f"{len(results) - len(failed)} of {len(results)} stages passed in {seconds:.0f} s")
    unsteady = [(test, result.stage) for result in results for test in result.unsteady]
    for test, stage in unsteady:
        say(f"unsteady  {test}  failed in {stage.name}, passed by itself: {' '.join(stage.again)} '{test}'")
    if len(unsteady) > UNSTEADY_MAX:
        say(f"FAIL  {len(unsteady)} tests are unsteady, more than {UNSTEADY_MAX}")
    for result in failed:
        say(f"{result.stage.name} again: {' '.join(result.stage.command)}")
        for test in result.failed:
            if test not in result.unsteady:
                say(f"failed twice  {test}: {' '.join(result.stage.again)} '{test}'")
    return 1 if failed or len(unsteady) > UNSTEADY_MAX else 0


def say(text: str) -> None:
    """Flushed, so that our lines stand among those of the tools in the order in which things happened."""
    print(text, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
