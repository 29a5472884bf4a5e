"""Finds, measures, stops and kills the processes below this one, even if they try to detach.

A slot is a subreaper, so a process that forks twice and starts its own session is still below the slot, and belongs to
the job. Where the system has no subreapers, the job's process group is used."""

import ctypes
import functools
import math
import os
import resource
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
KILL_PATIENCE_S = 5.0
BLOCK_BYTES = 512  # in these the kernel counts what is read and written
PEAK_SLACK_BYTES = 1 << 20

HAS_PROC = os.path.exists("/proc/self/stat")
_HAS_CHILDREN = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def become_reaper() -> bool:
    """Make descendants whose parents die children of this process."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent process dies."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    return bool(_system_library().prctl(option, value, 0, 0, 0) == 0)


@functools.cache
def _system_library() -> ctypes.CDLL:
    """Opened once: a process that a worker forks for a call finds it open."""
    return ctypes.CDLL(None)


def children(pid: int) -> list[int]:
    """The direct children of a process, zombies included."""
    if not _HAS_CHILDREN:
        return _children_by_scan().get(pid, []) if HAS_PROC else []
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as listing:
                found += map(int, listing.read().split())
        except OSError:
            continue
    return found


def _children_by_scan() -> dict[int, list[int]]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat_fields(int(name))):
            parents.setdefault(int(fields[1]), []).append(int(name))
    return parents


def _stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on: state, parent, group, session, ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as text:
            return text.read().rpartition(b")")[2].split()
    except OSError:
        return []


def descendants(root: int, *, spare: int = 0) -> list[int]:
    """All processes below `root`, without `spare` and those below it."""
    found: list[int] = []
    queue = [root]
    while queue:
        below = [pid for pid in children(queue.pop()) if pid != spare]
        found += below
        queue += below
    return found


def parent_of(pid: int) -> int:
    """The parent of a process; 0 if there is no such process."""
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else 0


def below_any(pid: int, roots: set[int]) -> bool:
    """Whether a process is one of `roots` or below one. It walks upwards, and starts again if a parent dies
    meanwhile."""
    at = pid
    while at > 1:
        if at in roots:
            return True
        fields = _stat_fields(at)
        if not fields:
            if at == pid:
                return False
            at = pid
            continue
        at = int(fields[1])
    return False


def stands_still(pid: int) -> bool:
    """Whether a process is stopped or a zombie."""
    return _stat_fields(pid)[:1] in ([b"T"], [b"t"], [b"Z"], [b"X"], [])


def session_of(pid: int) -> int:
    """The session that a process belongs to; 0 if it has ended."""
    fields = _stat_fields(pid)
    return int(fields[3]) if fields and fields[0] not in (b"Z", b"X") else 0


def resident_bytes(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb", buffering=0) as text:
                total += int(text.read().split()[1])
        except (OSError, IndexError):
            continue
    return total * _PAGE_BYTES


def used_cpu_ms(pids: list[int]) -> int:
    """CPU time of these processes, including children that have ended and were waited for."""
    ticks = 0
    for pid in pids:
        ticks += sum(map(int, _stat_fields(pid)[11:15]))
    return round(ticks * _TICK_MS)


def proportional_bytes(pids: list[int]) -> int:
    """Like `resident_bytes`, but shared memory counts once. Much slower."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as text:
                lines = text.read().splitlines()
        except OSError:
            continue
        total += next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")), 0)
    return total


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


class MillisecondRounder:
    """Rounds microseconds up to whole milliseconds, so that little is not nothing, and subtracts the excess from the
    next value, so that the sum is right."""

    def __init__(self) -> None:
        self._over_us = 0

    def of(self, used_us: int) -> int:
        due_us = used_us - self._over_us
        whole = max(0, math.ceil(due_us / 1000))
        self._over_us = whole * 1000 - due_us
        return whole


class Reaper:
    """Waits for every child that ends, and keeps its resource usage until the attempt's measures are taken."""

    def __init__(self) -> None:
        self.ended: dict[int, int] = {}
        self.cpu_s = 0.0
        self.peak_bytes = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self.stuck: set[int] = set()  # processes that could not be killed; they are not waited for any more
        self._whole_ms = MillisecondRounder()

    def cpu_ms(self) -> int:
        """CPU time of what has ended. Call it once per attempt."""
        return self._whole_ms.of(round(self.cpu_s * 1_000_000))

    def reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended[pid] = status
            self.stuck.discard(pid)
            self.cpu_s += usage.ru_utime + usage.ru_stime
            self.read_bytes += usage.ru_inblock * BLOCK_BYTES
            self.written_bytes += usage.ru_oublock * BLOCK_BYTES
            peak = usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024
            self.peak_bytes = max(self.peak_bytes, peak)

    def peak_of_children(self, *, seen_bytes: int) -> int:
        """Peak memory of ended processes, given the peak observed while they ran; 0 if unknown. The kernel counts this
        process's own memory for a child started from it, so a value of about that size means nothing."""
        ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if self.peak_bytes <= ours + PEAK_SLACK_BYTES:
            return seen_bytes
        return max(seen_bytes, self.peak_bytes)

    def forget(self) -> None:
        self.ended.clear()
        self.cpu_s = 0.0
        self.peak_bytes = 0
        self.read_bytes = 0
        self.written_bytes = 0

    def below(self, *, spare: int = 0) -> list[int]:
        """All live processes below this one."""
        pids = descendants(os.getpid(), spare=spare)
        return [pid for pid in pids if pid not in self.stuck] if self.stuck else pids

    def kill_below(self, *, spare: int = 0, group: int = 0) -> list[int]:
        """Kill everything below this process, repeatedly until nothing is left; returns those that could not be killed,
        which happens only to processes stuck in the kernel."""
        give_up_at = time.monotonic() + KILL_PATIENCE_S
        pause_s = 0.0002
        while True:
            pids = self.below(spare=spare)
            if not HAS_PROC and group:
                pids = [] if group in self.ended else [-group]
            if not pids:
                return []
            send(pids, signal.SIGKILL)
            self.reap()
            if time.monotonic() > give_up_at:
                self.stuck.update(pids)
                return pids
            time.sleep(pause_s)
            self.reap()
            pause_s = min(pause_s * 2, 0.02)


def kill_tree(root: int) -> None:
    """Kill a process that is not our child, and all below it. It stops the tree first, so that nothing escapes."""
    send([root], signal.SIGSTOP)
    for _ in range(100):
        pids = descendants(root)
        if not pids:
            break
        send(pids, signal.SIGKILL)
        time.sleep(0.001)
        if all(_stat_fields(pid)[:1] in ([], [b"Z"]) for pid in descendants(root)):
            break
    send([root], signal.SIGKILL)
