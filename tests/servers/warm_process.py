"""The process from which others of mendflow are forked, for tests: `python -m tests.servers.warm_process LINE ROOM`.

It loads what a server and a pilot load, makes the routes, and then waits on its line for starts. What it makes is not
its child but its sibling, a child of the process that asked: that one waits for it and kills it as if it had started it
by itself."""

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import platform
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tests.servers.warm_starts import LENGTH, STARTING, WARM, WarmPopen

LOADED = (
    *("mendflow.cli.main", "mendflow.cli.serve", "mendflow.cli.run", "mendflow.cli.pilot", "mendflow.pilot.main"),
    *("mendflow.pilot.slot.process", "mendflow.pilot.slot.guard", "mendflow.server.access_setup"),
    *("mendflow.services.api.reasons", "mendflow.services.api.case_queries", "mendflow.server.runner"),
    *("mendflow.server.pilot_api", "uvloop", "uvicorn.protocols.http.httptools_impl", "uvicorn.lifespan.off"),
)
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE_PARENT = 0x8000
PR_SET_MM, PR_SET_MM_ARG_END = 35, 9
DESCRIPTORS_MAX = 16
PATH = sys.path[1:]
FREE = 500
"""Descriptors from here on are nobody's."""


def serve(line: socket.socket) -> dict[str, Any] | None:
    """Fork whoever is asked for, until nobody can ask any more. In each fork: what it is to be."""
    while True:
        length, descriptors, _, _ = socket.recv_fds(line, LENGTH, DESCRIPTORS_MAX)
        if not length:
            return None
        told: dict[str, Any] = json.loads(line.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL))
        pid = sibling()
        if pid == 0:
            line.close()
            return {**told, "received": descriptors}
        for descriptor in descriptors:
            os.close(descriptor)
        line.sendall(max(pid, 0).to_bytes(LENGTH, "big"))


def sibling() -> int:
    """As `os.fork`, but the new process is a child of our parent."""
    kernel, python = ctypes.PyDLL(None), ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid = int(kernel.syscall(CLONE[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def become(told: dict[str, Any]) -> str:
    """Take on what a process has from its start; the module that it runs."""
    words: list[str] = told["words"]
    module, *rest = words[3 if words[1] == "-P" else 2 :]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _hold(told["received"], [0, 1, 2, *told["descriptors"]])
    if told["session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    _show(words)
    sys.path[:] = [*([] if words[1] == "-P" else [told["folder"]]), *PATH]
    sys.argv[:] = [module, *rest]
    sys.orig_argv[:] = words
    held: Any = sys
    held.stdin = held.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), sys.stdin.encoding)
    held.stdout = held.__stdout__ = _written_to(1, sys.stdout)
    held.stderr = held.__stderr__ = _written_to(2, sys.stderr)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    return module


def _hold(received: Sequence[int], numbers: Sequence[int]) -> None:
    """Have what we were given under the numbers that it has for whoever gave it."""
    for place, descriptor in enumerate(received):
        os.dup2(descriptor, FREE + place)
        os.close(descriptor)
    for place, number in enumerate(numbers):
        os.dup2(FREE + place, number)
        os.close(FREE + place)


def _show(words: Sequence[str]) -> None:
    """Let /proc show our words instead of those of the process that we were forked from."""
    with open("/proc/self/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    shown = b"".join(os.fsencode(word) + b"\0" for word in words)
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, shown, len(shown))
    # Who may not cut off the room that is left has some empty words at the end.
    ctypes.CDLL(None).prctl(PR_SET_MM, PR_SET_MM_ARG_END, ctypes.c_ulong(begin + len(shown)), 0, 0)


def _written_to(number: int, before: Any) -> io.TextIOWrapper:
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    raw = io.FileIO(number, "wb", closefd=False)
    by_line = number == 2 or os.isatty(number)
    written: Any = raw if at_once else io.BufferedWriter(raw)
    return io.TextIOWrapper(written, before.encoding, before.errors, line_buffering=by_line, write_through=at_once)


def load() -> None:
    for name in LOADED:
        importlib.import_module(name)
    importlib.import_module("mendflow.server.app").routes()
    gc.collect()
    gc.freeze()


def fork_below() -> dict[str, Any] | None:
    """Have a process of our own to fork from: a fork of ours, before we have done anything. In what is forked from it:
    what that is to be."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        WARM.take(ours)
        starts: Any = subprocess
        starts.Popen = WarmPopen
        return None
    ours.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _show([sys.executable, "-m", "tests.servers.warm_process"])
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)
    asked = serve(theirs)
    if asked is None:
        os._exit(0)
    return asked


def run(module: str) -> NoReturn:
    """As `python -m` does."""
    end_as(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))


def end_as(whole: Callable[[], object]) -> NoReturn:
    """Do it and end. The memory goes as a whole: to take it apart would copy all that was loaded."""
    try:
        whole()
        code = 0
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter does at its end
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    module = ""
    while asked is not None:
        module = become(asked)
        asked = fork_below() if asked["below"] and module in STARTING else None
    if module:
        run(module)
