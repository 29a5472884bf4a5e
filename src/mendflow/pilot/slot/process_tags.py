"""Finds all processes of a pilot's jobs, even when no slot watches them and they have changed their environment.

Below a live slot, a job's processes are found by descent. When the slot is dead, descent ends at the first process that
lost its parent, so every process inherits two tags: the pilot's name in the environment, and a limit on resident memory
whose value is the pilot's number. Linux has not enforced that limit since 2.4.30, and it survives fork, exec, a cleared
environment and a new session at no cost. A process in the same session as a tagged one, or below it, belongs to the
pilot too."""

import hashlib
import os
import resource
import signal
import sys
import time
from collections.abc import Set as AbstractSet

from mendflow.pilot.slot import spare
from mendflow.pilot.slot.processes import HAS_PROC, below_any, descendants, send, session_of, stands_still

KILL_ROUNDS = 100
ROUND_S = 0.01
_FAR_ABOVE_ALL_MEMORY = 1 << 61
_LIMIT_NAME = b"Max resident set"
_SPARE_SLOT = [b"-P", b"-m", spare.MODULE.encode(), spare.OPTION.encode()]
_GONE = (b"Z", b"X", b"x")
_PART_BYTES = 1 << 14


def tag_of(pilot: str) -> int:
    """A memory limit whose value identifies the pilot; it limits nothing."""
    digest = hashlib.blake2b(pilot.encode(), digest_size=6).digest()
    return _FAR_ABOVE_ALL_MEMORY | int.from_bytes(digest, "big")


def tag_process(pid: int, pilot: str) -> None:
    """Tag this process and all that it will start. If the system refuses, the tag in the environment must suffice."""
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
    """The live processes of the pilot that are neither in `watching` nor below one of these. Processes in `spared` are
    left out, those below them are not."""
    if not HAS_PROC:
        return []
    mark, number = f"MENDFLOW_PILOT={pilot}".encode(), tag_of(pilot)
    sessions = _sessions()
    lone = {pid for pid in sessions if _has_tag(pid, mark, number) and pid not in spared and not _is_gone(pid)}
    if not lone:
        return []
    lone = {pid for pid in lone if not below_any(pid, {*watching})}
    kept = {os.getsid(0), *(sessions.get(pid, 0) for pid in (*watching, *spared))}
    shared = {sessions[pid] for pid in lone} - kept
    lone |= {pid for pid, session in sessions.items() if session in shared}
    lone |= {child for pid in lone for child in descendants(pid)}
    found = [pid for pid in lone - spared - {os.getpid()} if not below_any(pid, {*watching})]
    return [pid for pid in found if not _is_gone(pid)]


def kill_unwatched(pilot: str, watching: AbstractSet[int], spared: AbstractSet[int] = frozenset()) -> bool:
    """Kill them repeatedly until none is left; False if one could not be killed or has another owner."""
    for _ in range(KILL_ROUNDS):
        doomed = list_unwatched(pilot, watching, spared)
        if not doomed:
            return True
        send(doomed, signal.SIGKILL)
        _bury(doomed)
        time.sleep(ROUND_S)
        _bury(doomed)
    return False


def find_slots(folder: str) -> set[int]:
    """The slot processes that work in this folder, whoever started them."""
    if not HAS_PROC:
        return set()
    ours, name = os.geteuid(), os.fsencode(folder)
    return {pid for pid in _all() if _is_slot(pid, name) and (not ours or _owner(pid) == ours)}


def resume_slots(slots: AbstractSet[int]) -> None:
    """Send SIGCONT to slots that were stopped."""
    send([pid for pid in slots if stands_still(pid)], signal.SIGCONT)


def has_processes(pilot: str) -> bool:
    """Whether any process of the pilot is left, its slots included."""
    return bool(list_unwatched(pilot, frozenset()))


def _all() -> list[int]:
    """Every process there is, and the kernel's threads."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _sessions() -> dict[int, int]:
    """Every process of this user, and its session."""
    ours = os.geteuid()
    found = {}
    for pid in _all():
        if ours and _owner(pid) != ours:
            continue
        try:
            found[pid] = os.getsid(pid)
        except PermissionError:
            found[pid] = session_of(pid)
        except OSError:
            continue
    return found


def _owner(pid: int) -> int:
    """The user of a process; -1 if there is none. The folder of one that hides its memory belongs to root."""
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1
    if owner:
        return owner
    line = next((line for line in _read(pid, "status").splitlines() if line.startswith(b"Uid:")), b"Uid: -1 -1")
    return int(line.split()[2])


def _has_tag(pid: int, mark: bytes, number: int) -> bool:
    return _limit(pid) == number or mark in _read(pid, "environ").split(b"\0")


def _limit(pid: int) -> int:
    """The limit on resident memory; 0 if there is no such process. To ask for it takes a twentieth of the time of
    reading all limits, which anybody may."""
    try:
        if sys.platform == "linux":
            return resource.prlimit(pid, resource.RLIMIT_RSS)[0]
    except PermissionError:
        pass
    except OSError:
        return 0
    found = (line for line in _read(pid, "limits").splitlines() if line.startswith(_LIMIT_NAME))
    text = next(found, b"")[len(_LIMIT_NAME) :].split()[:1]
    return int(text[0]) if text and text[0].isdigit() else 0


def _is_slot(pid: int, folder: bytes) -> bool:
    """A slot names its folder in its command line; one that was a spare has only mapped the lease of its folder."""
    words = _read(pid, "cmdline").split(b"\0")[1:5]
    if words == _SPARE_SLOT:
        lease = os.path.realpath(folder) + b"/lease"
        return any(line.endswith(b" " + lease) for line in _read(pid, "maps").splitlines())
    return words == [*_SPARE_SLOT[:3], folder]


def _is_gone(pid: int) -> bool:
    state = _read(pid, "stat").rpartition(b")")[2].split()[:1]
    return not state or state[0] in _GONE


def _read(pid: int, name: str) -> bytes:
    """A file of a process, empty if it is gone. Whoever starts a pilot waits while this is done for all processes of
    the machine: without a file object it takes half as long."""
    try:
        descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = [os.read(descriptor, _PART_BYTES)]
        while parts[-1]:
            parts.append(os.read(descriptor, _PART_BYTES))
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _bury(pids: list[int]) -> None:
    """Wait for those that have become children of this process, so that they do not stay as zombies."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue
