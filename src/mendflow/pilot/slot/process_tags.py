"""All processes of a pilot's jobs, whoever watches them, and whatever they did to their environment.

Below a living slot what belongs to a job is found by descent. When the slot is dead, descent ends at the first process
that lost its parent, so every process carries two signs that it inherits: the pilot's name in the environment, and a
bound on resident memory that is the pilot's number. Linux has not enforced that bound since 2.4.30, and it goes through
fork, exec, a cleared environment and a new session at no cost. Whoever shares a session with a process that is found,
or stands below it, belongs to it too."""

import hashlib
import os
import resource
import signal
import sys
import time
from collections.abc import Set as AbstractSet

from mendflow.pilot.slot.processes import HAS_PROC, below_any, descendants, send, stands_still

KILL_ROUNDS = 100
ROUND_S = 0.01
SLOT_MODULE = b"mendflow.pilot.slot.process"
_FAR_ABOVE_ALL_MEMORY = 1 << 61
_LIMIT_NAME = b"Max resident set"
_GONE = (b"Z", b"X", b"x")


def tag_of(pilot: str) -> int:
    """A bound on memory that says which pilot a process belongs to, and bounds nothing."""
    digest = hashlib.blake2b(pilot.encode(), digest_size=6).digest()
    return _FAR_ABOVE_ALL_MEMORY | int.from_bytes(digest, "big")


def tag_process(pid: int, pilot: str) -> None:
    """Let this process and all that it will start carry the pilot's number. Where the system will not have it, the name
    in the environment must do."""
    if sys.platform != "linux":
        return
    number = tag_of(pilot)
    try:
        _, most = resource.prlimit(pid, resource.RLIMIT_RSS)
        if most == resource.RLIM_INFINITY or most >= number:
            resource.prlimit(pid, resource.RLIMIT_RSS, (number, most))
    except (OSError, ValueError):
        return


def list_unwatched(pilot: str, watching: AbstractSet[int], spared: AbstractSet[int] = frozenset()) -> list[int]:
    """The living processes of the pilot that are neither in `watching` nor below one of these. `spared` are not given,
    but what is below them is."""
    if not HAS_PROC:
        return []
    mark, number = f"MENDFLOW_PILOT={pilot}".encode(), b"%d" % tag_of(pilot)
    sessions = _sessions()
    lone = {pid for pid in sessions if _has_tag(pid, mark, number) and pid not in spared}
    lone = {pid for pid in lone if not below_any(pid, {*watching})}
    kept = {os.getsid(0), *(sessions.get(pid, 0) for pid in (*watching, *spared))}
    shared = {sessions[pid] for pid in lone} - kept
    lone |= {pid for pid, session in sessions.items() if session in shared}
    lone |= {child for pid in lone for child in descendants(pid)}
    return [pid for pid in lone - spared - {os.getpid()} if not below_any(pid, {*watching})]


def kill_unwatched(pilot: str, watching: AbstractSet[int], spared: AbstractSet[int] = frozenset()) -> bool:
    """Kill them, again until nothing is left; False if something would not die, or has another owner."""
    for _ in range(KILL_ROUNDS):
        doomed = [pid for pid in list_unwatched(pilot, watching, spared) if not _is_gone(pid)]
        if not doomed:
            return True
        send(doomed, signal.SIGKILL)
        _bury(doomed)
        time.sleep(ROUND_S)
        _bury(doomed)
    return False


def find_slots(folder: str) -> set[int]:
    """The slot processes that work in this folder, whoever started them."""
    return {pid for pid in _sessions() if _is_slot(pid, os.fsencode(folder))} if HAS_PROC else set()


def resume_slots(slots: AbstractSet[int]) -> None:
    """Let slots go on that somebody has stopped."""
    send([pid for pid in slots if stands_still(pid)], signal.SIGCONT)


def has_processes(pilot: str) -> bool:
    """Whether any process of the pilot is left, its slots included."""
    return bool(list_unwatched(pilot, frozenset()))


def _sessions() -> dict[int, int]:
    """Every living process of this user, and its session."""
    ours = os.geteuid()
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if ours and os.stat(f"/proc/{name}").st_uid != ours:
                continue
            with open(f"/proc/{name}/stat", "rb", buffering=0) as text:
                fields = text.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] not in _GONE:
            found[int(name)] = int(fields[3])
    return found


def _has_tag(pid: int, mark: bytes, number: bytes) -> bool:
    return mark in _read(pid, "environ").split(b"\0") or number == _bound(pid)


def _bound(pid: int) -> bytes:
    for line in _read(pid, "limits").splitlines():
        if line.startswith(_LIMIT_NAME):
            return line[len(_LIMIT_NAME) :].split()[0]
    return b""


def _is_slot(pid: int, folder: bytes) -> bool:
    return _read(pid, "cmdline").split(b"\0")[1:4] == [b"-m", SLOT_MODULE, folder]


def _is_gone(pid: int) -> bool:
    state = _read(pid, "stat").rpartition(b")")[2].split()[:1]
    return not state or state[0] in _GONE


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as text:
            return text.read()
    except OSError:
        return b""


def _bury(pids: list[int]) -> None:
    """Those that have become children of this process wait for somebody to ask how they ended."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue
