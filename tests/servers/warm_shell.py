"""A bash whose `mendflow` is forked from a process that has loaded it, for tests: see tests/servers/warm_starts.py.

Its host, `python -m tests.servers.warm_shell LINE FOLDER PLACE PROGRAM`, is such a fork itself. It starts the bash with
another `mendflow` first on its path: a small program (tests/servers/warm_command.py) that hands its words, folder,
environment and streams to the host, and waits. The host forks what runs the installed program from its first line on,
and tells how it ended. Signals that the small one gets are passed on; if it is killed, so is what it stands for. What
has a secret in its environment is started as usual."""

import ctypes
import marshal
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.servers.warm_process import DESCRIPTORS_MAX, become, end_as, fork_below, run
from tests.servers.warm_starts import LENGTH, ROOT, STARTING, WORDS_MAX, WarmPopen, is_special, message

BASH = ("bash", "--norc", "--noprofile")
COMMAND = Path(__file__).with_name("warm_command.py")
COLD = b"cold"
"""What the host answers if the command is to be started as usual."""

PR_SET_PDEATHSIG = 1


class WarmShell(WarmPopen[bytes]):
    """The host as a process of ours, with the streams of its bash; it ends when its bash and all that was forked have.
    `place` is a new folder for the small program."""

    def __init__(self, folder: Path, environ: Mapping[str, str], place: Path) -> None:
        real = shutil.which("mendflow", path=environ["PATH"])
        assert real is not None, "mendflow is not installed"
        line = f"mendflow-shell-{os.urandom(8).hex()}"
        place.mkdir()
        _write_command(place / "mendflow", line, real)
        super().__init__(
            [sys.executable, "-m", "tests.servers.warm_shell", line, str(folder), str(place), real],
            cwd=ROOT,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        while self.poll() is None and os.getpgid(self.pid) != self.pid:
            time.sleep(0.001)  # a fork is there before it has a group of its own, by which it is ended

    def message(self, asked: Mapping[str, Any]) -> bytes:
        return message(asked)


def _write_command(path: Path, line: str, real: str) -> None:
    """Without site and settings of Python it loads in a hundredth of a second."""
    path.write_text(f"#!{sys.executable} -IS\n{COMMAND.read_text()}\n\nask({line!r}, {real!r})\n")
    path.chmod(0o755)


class Command(NamedTuple):
    """What `mendflow` was called with in the shell."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    ignored: list[int]

    @property
    def given(self) -> list[str]:
        return [sys.executable, "-m", "mendflow", *self.words]

    @property
    def cold(self) -> bool:
        too_long = sum(len(os.fsencode(word)) + 1 for word in self.given) > WORDS_MAX
        return too_long or is_special(self.environment)


class Fork(NamedTuple):
    """We are one: for this command, with these streams."""

    command: Command
    streams: list[int]


class Host:
    def __init__(self, line: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind("\0" + line)
        self._listener.listen(32)
        self._asked_by: dict[int, socket.socket] = {}
        self._ends, self._told = socket.socketpair()
        self._told.setblocking(False)
        self._selector = selectors.DefaultSelector()

    def serve(self, bash: int) -> Fork | None:
        """Until bash and all that was forked have ended; or, in each that is forked, at once. Who wants the shell to
        end tells all of its group; we wait for the others."""
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._told.fileno(), warn_on_full_buffer=False)
        self._selector.register(self._ends, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        living = {bash}
        while living:
            for key, _ in self._selector.select():
                if key.fileobj is self._ends:
                    self._ends.recv(4096)
                elif key.fileobj is self._listener:
                    fork = self._fork(living)
                    if fork is not None:
                        return fork
                elif key.data in self._asked_by:
                    self._pass_on(key.data)
            self._collect(living)
        return None

    def _fork(self, living: set[int]) -> Fork | None:
        line, _ = self._listener.accept()
        length, streams, _, _ = socket.recv_fds(line, LENGTH, DESCRIPTORS_MAX)
        command = Command(*marshal.loads(line.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)))
        if command.cold:
            line.sendall(COLD)
            line.close()
        elif pid := os.fork():
            living.add(pid)
            self._asked_by[pid] = line
            self._selector.register(line, selectors.EVENT_READ, pid)
        else:
            self._forget(line)
            return Fork(command, streams)
        for stream in streams:
            os.close(stream)
        return None

    def _forget(self, line: socket.socket) -> None:
        """In a fork: have nothing of the host's, and end with it. Only what stands for us passes on its signals."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        for each in (line, self._listener, self._ends, self._told, *self._asked_by.values()):
            each.close()
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def _pass_on(self, pid: int) -> None:
        """A signal; or what stood for it is gone, killed."""
        number = self._asked_by[pid].recv(1)
        if not number:
            self._drop(pid)
        os.kill(pid, number[0] if number else signal.SIGKILL)

    def _drop(self, pid: int, last: bytes = b"") -> None:
        with self._asked_by.pop(pid) as line:
            self._selector.unregister(line)
            if last:
                line.sendall(last)

    def _collect(self, living: set[int]) -> None:
        while living:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            living.discard(pid)
            if pid in self._asked_by:
                self._drop(pid, os.waitstatus_to_exitcode(status).to_bytes(len(COLD), "big", signed=True))


def _bash(folder: str, place: str) -> int:
    """It has our streams, and we have them no longer: what it prints ends with it."""
    environ = {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    bash = subprocess.Popen(BASH, cwd=folder, env=environ)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)
    bash.returncode = 0  # the host collects it with all others
    return bash.pid


def _become(fork: Fork) -> str:
    command, streams = fork
    told = {"words": command.given, "folder": command.folder, "environment": command.environment, "received": streams}
    module = become({**told, "session": False, "descriptors": []})
    for number in command.ignored:
        signal.signal(number, signal.SIG_IGN)
    return module


def main(line: str, folder: str, place: str, program: str) -> None:
    host = Host(line)
    fork = host.serve(_bash(folder, place))
    if fork is None:
        return
    _become(fork)
    asked = fork_below()
    if asked is None:
        sys.path[0], sys.argv[0] = os.path.dirname(program), program
        end_as(lambda: runpy.run_path(program, run_name="__main__"))
    module = ""
    while asked is not None:
        module = become(asked)
        asked = fork_below() if asked["below"] and module in STARTING else None
    run(module)


if __name__ == "__main__":
    main(*sys.argv[1:])
