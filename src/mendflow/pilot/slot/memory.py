"""The machine's memory: how much there is, and whether the kernel has just killed a process for it.

The kernel kills with SIGKILL, like anybody else. It does not say whom it killed, but it counts; and a job that was
killed while it used nearly all that it may use was most likely killed for that."""

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN = "/proc/self/cgroup"
MACHINE_COUNTER = Path("/proc/vmstat")
"""Counts the out-of-memory kills of the whole machine."""

NEAR = 0.9
"""A killed job that used this share of its limit is assumed to have been killed for its memory."""


def machine_bytes(own: str = OWN) -> int:
    """The machine's memory, or the lower limit of the container or batch job that contains this process."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([whole, *(bound for folder in _groups(own) if (bound := _bound(folder)) is not None)])


def _bound(group: Path) -> int | None:
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            return int((group / name).read_text())
        except (OSError, ValueError):  # another kind of cgroup, or one without a limit
            continue
    return None


def _groups(own: str) -> list[Path]:
    """The memory cgroups of this process, from the innermost outwards."""
    try:
        lines = Path(own).read_text().splitlines()
    except OSError:
        lines = []
    found: list[Path] = []
    for line in lines:
        _, kinds, path = (*line.split(":", 2), "", "")[:3]
        if not kinds or "memory" in kinds.split(","):
            top = CGROUPS / "memory" if kinds else CGROUPS
            inner = top / path.lstrip("/")
            found += [inner, *(outer for outer in inner.parents if outer.is_relative_to(top))]
    return found


def counters(own: str = OWN) -> list[Path]:
    """The files that count out-of-memory kills, the nearest to this process first."""
    old = CGROUPS / "memory"
    files = [group / ("memory.oom_control" if group.is_relative_to(old) else "memory.events") for group in _groups(own)]
    return [*files, MACHINE_COUNTER]


class OutOfMemoryKills:
    """Counts out-of-memory kills in this cgroup, or on the whole machine if that is not available."""

    def __init__(self, places: list[Path] | None = None) -> None:
        self._count = -1
        self._lately = False
        for place in counters() if places is None else places:
            self._place = place
            self._count = self._read()
            if self._count >= 0:
                break

    def heartbeat(self) -> None:
        """Call this regularly while a job runs: the job has survived any kill before the previous call. After a later
        kill it may have lost one process and be about to end because of it."""
        self._lately = self._new()

    def look(self) -> bool:
        """Whether there was a kill since the last look, or since the heartbeat before the last."""
        lately, self._lately = self._lately, False
        return self._new() or lately

    def _new(self) -> bool:
        if self._count < 0:
            return False
        before, self._count = self._count, self._read()
        return 0 <= before < self._count

    def _read(self) -> int:
        try:
            for line in self._place.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
        except (OSError, ValueError):
            pass
        return -1


def near_bound(peak_bytes: int, limit_bytes: int) -> bool:
    """Whether a job used nearly all the memory it asked for, or, if it asked for none, nearly all there is."""
    return peak_bytes >= NEAR * (limit_bytes or machine_bytes())
