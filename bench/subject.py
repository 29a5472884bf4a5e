"""What is measured, and how a subject of measurement answers.

Each subject runs in a process of its own, started with the interpreter that has it installed, and says what it
measured as one line of JSON. Starting up and warming up are not counted: what is counted begins with the first
submission and ends with the last result in the caller's hands."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

T = TypeVar("T")

WORKERS = 2
WARM_UP_JOBS = 20


class Kind(StrEnum):
    PYTHON = "python"  # independent no-op Python jobs
    SHELL = "shell"  # independent no-op shell jobs
    CHAIN = "chain"  # jobs that each wait for the one before


class Sizes(NamedTuple):
    python: int
    shell: int
    chain: int

    def of(self, kind: Kind) -> int:
        return {Kind.PYTHON: self.python, Kind.SHELL: self.shell, Kind.CHAIN: self.chain}[kind]


class CaseReference:
    """A system that runs jobs: entered once, then asked to do so many jobs of a kind to their end.

    What it cannot do it leaves out of `kinds`; `limits` bounds a size that would take too long. It has a folder,
    and what it opened is closed in reverse order."""

    kinds: tuple[Kind, ...] = (Kind.PYTHON, Kind.SHELL, Kind.CHAIN)
    limits: dict[Kind, int] = {}

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def keep(self, context: AbstractContextManager[T]) -> T:
        return self._stack.enter_context(context)

    def at_end(self, callback: Callable[[], object]) -> None:
        self._stack.callback(callback)

    def start(self) -> None: ...

    def define(self, kind: Kind, jobs: int) -> None:
        """Say what is to be done, where a system wants that once and beforehand. Not counted."""

    def run(self, kind: Kind, jobs: int) -> None:
        getattr(self, str(kind))(jobs)


def noop(value: int = 0) -> int:
    return value


def step(value: int) -> int:
    return value + 1


def shell() -> int:
    return subprocess.run(["/bin/sh", "-c", "true"], check=True).returncode


def answer(make: Callable[[], CaseReference]) -> None:
    """The main function of a subject's module: `python -m MODULE python=2000 shell=400 chain=200`."""
    sizes = {Kind(name): int(count) for name, _, count in (word.partition("=") for word in sys.argv[1:])}
    with make() as subject:
        measured = {kind: _measure(subject, kind, jobs) for kind, jobs in sizes.items() if kind in subject.kinds}
    sys.stdout.flush()
    print("\n" + json.dumps(measured), flush=True)


def _measure(subject: CaseReference, kind: Kind, jobs: int) -> dict[str, float]:
    jobs = min(jobs, subject.limits.get(kind, jobs))
    subject.run(kind, min(WARM_UP_JOBS, jobs))
    subject.define(kind, jobs)
    started = time.perf_counter()
    subject.run(kind, jobs)
    return {"jobs": jobs, "seconds": time.perf_counter() - started}
