"""A command of the command line, run inside the tests' own process: what it prints and how it ends.

A process of its own costs a second before it does anything, nearly all of it loading. Where a test looks only at
output and exit code, this is the same: the same words to the same `main`, in the same folder and environment."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from mendflow.cli import main as command_line
from mendflow.cli.command_table import COMMANDS, CommandEntry
from mendflow.cli.main import main

LOADED: dict[tuple[str, int], Any] = {}
"""Commands by their name and table. A process makes the one that it runs; here hundreds run in one."""


def _load(name: str, entries: dict[str, CommandEntry] = COMMANDS) -> Any:
    key = name, id(entries)
    if key not in LOADED:
        LOADED[key] = _make(name, entries)
    return LOADED[key]


_make, command_line.load = command_line.load, _load


def run_command(
    words: Sequence[str], *, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Give these words to the command line and return what a process would have left."""
    out, errors = _stream(), _stream()
    with _as_its_own(folder, environment), redirect_stdout(out), redirect_stderr(errors):
        code = _ended(list(words))
    return subprocess.CompletedProcess(["mendflow", *words], code, _text(out), _text(errors))


def _ended(words: list[str]) -> int:
    try:
        main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


@contextmanager
def _as_its_own(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """In this folder, with this environment and nothing on standard input; afterwards all is as it was. Modules that
    the command loaded from the folder are forgotten: the next command may find other text in the same file. Our own
    stay, also if the folder is the checkout: two of a module would have two classes of each name."""
    environ, start_local_cluster, path, modules = dict(os.environ), Path.cwd(), list(sys.path), set(sys.modules)
    stdin = sys.stdin
    with open(os.devnull) as nothing:
        try:
            sys.stdin = nothing
            _become(environment)
            os.chdir(folder)
            yield
        finally:
            sys.stdin = stdin
            _become(environ)
            os.chdir(start_local_cluster)
            sys.path[:] = path
            for name in set(sys.modules) - modules:
                if name.partition(".")[0] != "mendflow" and str(
                    getattr(sys.modules[name], "__file__", None) or ""
                ).startswith(f"{folder}{os.sep}"):
                    del sys.modules[name]


def _become(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


def _stream() -> io.TextIOWrapper:
    """Like a pipe: no terminal, and with bytes below for those who write bytes."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    below = stream.buffer
    assert isinstance(below, io.BytesIO)
    return below.getvalue().decode("utf-8", "replace")
