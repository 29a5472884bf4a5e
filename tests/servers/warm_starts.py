"""Processes of mendflow that tests start, forked from one that has loaded it (tests/servers/warm_process.py).

A server loads for a second, or two on a busy machine, before it does anything, and the tests start hundreds. Within
`warm_starts()` a `subprocess.Popen` of `python -m mendflow ...` or `python -m mendflow.pilot ...` is forked from a
process that has its modules and routes at hand and has done nothing else. It is a child of whoever asked for it, with
words, folder, environment and streams of its own, and goes the same way from `__main__` on: it is killed, waited for
and found in /proc like any other. What has a secret in its environment, or a setting of Python, starts as usual: where
a process keeps its environment is what such tests are about. So do the tests of start-up.

With `below=True` what these processes start is forked as well: a pilot, its slots and its guard. This is for tests that
look at what comes of a flow. Workers, which run the code of users, always start as usual."""

import inspect
import json
import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, AnyStr

ROOT = Path(__file__).parents[2]
STARTING = ("mendflow", "mendflow.pilot")
"""Modules whose processes start others."""

MODULES = (*STARTING, "mendflow.pilot.slot.process", "mendflow.pilot.slot.guard")
POSSIBLE = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
LENGTH = 8
WORDS_MAX = 2000
SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY")
"""What the name of a variable has whose value is one."""

FIRST = dict(os.environ)
"""The environment before a test has changed it, which is that of the process that is forked."""

USUAL: Mapping[str, Any] = {
    **dict.fromkeys(("executable", "preexec_fn", "gid", "gids", "uid")),
    **dict.fromkeys(("umask", "process_group"), -1),
    "shell": False,
    "close_fds": True,
}
"""What a start that is not special leaves as it is."""

_PLAIN: Any = subprocess.Popen
_GIVEN = inspect.signature(_PLAIN._execute_child)
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


class WarmPopen(subprocess.Popen[AnyStr]):
    """As `subprocess.Popen`; only that a start of mendflow is a fork."""

    def _execute_child(self, *given: Any) -> None:
        asked: dict[str, Any] = _GIVEN.bind(self, *given).arguments
        pipes = {name: asked[name] for name in _PIPES}
        theirs = (pipes["p2cread"], pipes["c2pwrite"], pipes["errwrite"])
        told = self.message(asked)
        streams: list[int] = [number if pipe == -1 else pipe for number, pipe in enumerate(theirs)]
        pid = WARM.start(told, [*streams, *asked["pass_fds"]]) if told else 0
        if pid:
            self.pid, self._child_created = pid, True
            _PLAIN._close_pipe_fds(self, *pipes.values())
        else:
            _PLAIN._execute_child(self, *given)

    def message(self, asked: Mapping[str, Any]) -> bytes:
        """What the warm process is told of a start; empty if this one is to be as usual."""
        words = asked["args"]
        if not POSSIBLE or not isinstance(words, list | tuple) or not _is_ours([str(word) for word in words]):
            return b""
        environment = dict(os.environ if asked["env"] is None else asked["env"])
        if any(asked.get(name, usual) != usual for name, usual in USUAL.items()) or is_special(environment):
            return b""
        if not os.path.isdir(_folder(asked)) or sum(len(os.fsencode(word)) + 1 for word in words) > WORDS_MAX:
            return b""
        return message(asked)


@contextmanager
def warm_starts(*, below: bool = False) -> Iterator[None]:
    module: Any = subprocess
    before, module.Popen = (module.Popen, WARM.below), WarmPopen
    WARM.below = below
    try:
        yield
    finally:
        module.Popen, WARM.below = before


@contextmanager
def usual_starts() -> Iterator[None]:
    """For a test that looks closely at what a process has started."""
    module: Any = subprocess
    before, module.Popen = module.Popen, _PLAIN
    try:
        yield
    finally:
        module.Popen = before


def message(asked: Mapping[str, Any]) -> bytes:
    told = {
        "words": [str(word) for word in asked["args"]],
        "folder": _folder(asked),
        "environment": dict(os.environ if asked["env"] is None else asked["env"]),
        "session": bool(asked["start_new_session"]),
        "descriptors": list(asked["pass_fds"]),
        "below": WARM.below,
    }
    return json.dumps(told).encode()


def _folder(asked: Mapping[str, Any]) -> str:
    return os.path.abspath(asked["cwd"] or os.getcwd())


def _is_ours(words: Sequence[str]) -> bool:
    rest = words[2:] if words[1:2] == ["-P"] else words[1:]
    return words[:1] == [sys.executable] and rest[:1] == ["-m"] and rest[1:2] != [] and rest[1] in MODULES


def is_special(environment: Mapping[str, str]) -> bool:
    given = {name for name, value in environment.items() if FIRST.get(name) != value}
    return any(name.startswith("PYTHON") or any(word in name for word in SECRET) for name in given)


class WarmProcess:
    """The process that has loaded mendflow: started when it is first wanted, and ended with ours."""

    def __init__(self) -> None:
        self.below = False
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._owner = 0

    def take(self, line: socket.socket) -> None:
        """There is one already, at the other end of this line."""
        self.below, self._line, self._owner = True, line, os.getpid()

    def start(self, message: bytes, streams: Sequence[int]) -> int:
        """The pid of a new child of ours; 0 if there is none to be had."""
        with self._lock:
            if self._owner and self._owner != os.getpid():
                return 0
            if self._line is None:
                self._line = self._load()
            try:
                socket.send_fds(self._line, [len(message).to_bytes(LENGTH, "big")], list(streams))
                self._line.sendall(message)
                return int.from_bytes(self._line.recv(LENGTH, socket.MSG_WAITALL), "big")
            except OSError:
                self._line = None
                return 0

    def _load(self) -> socket.socket:
        """It dies when our end of its line closes. Its long last word leaves room for the words of others."""
        self._owner = os.getpid()
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            module, room = "tests.servers.warm_process", " " * (WORDS_MAX + 100)
            _PLAIN([sys.executable, "-m", module, str(number), room], cwd=ROOT, env=FIRST, pass_fds=[number])
        return ours


WARM: WarmProcess = WarmProcess()
