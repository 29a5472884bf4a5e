"""Processes that tests start: each dies with the tests, so that none is left behind, and has ports of its own."""

import random
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STOP_S = 20

_LAUNCHER = ThreadPoolExecutor(1)
"""A process dies with the thread that started it; this one lives as long as the tests."""

_given: set[int] = set()


def dying_with_us() -> list[str]:
    """What goes before a command so that the kernel ends it when the tests end, however they do."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def launch(
    command: Sequence[str], *, log: Path, cwd: Path, env: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start, and do not wait. What it says goes to the end of `log`."""
    with log.open("ab") as out:
        start = _LAUNCHER.submit(
            subprocess.Popen, command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd, env=env
        )
        return start.result()


def end(process: "subprocess.Popen[bytes]", *, kill: bool) -> None:
    """Ask it to end and wait for it; or kill it, as when the power goes."""
    if not kill:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            kill = True
    if kill:
        process.kill()
    process.wait()


def free_port(among: Sequence[int] = (), *, and_above: int = 0) -> int:
    """A port that nobody has just now and that was not given before; nobody has the one `and_above` it either."""
    for port in random.sample(among, len(among)) if among else [0] * 100:
        found = _free(port)
        if found and found not in _given and (not and_above or _free(found + and_above)):
            _given.add(found)
            return found
    raise AssertionError("no free port")


def _free(port: int) -> int:
    """This port, or any if it is 0; 0 if somebody has it."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
        return int(probe.getsockname()[1])
