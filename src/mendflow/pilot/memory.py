"""What this machine says of memory: how much there is, and whether the kernel has just killed somebody for it.

The kernel ends a job that goes too far with the same signal as anybody else would. Whom it killed it does not tell, but
it counts; and a job that was killed while it had nearly all that it might have leaves little doubt."""

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
NEAR = 0.9
"""From this part of what it may have a killed job is taken to have been killed for its memory."""


def machine_bytes() -> int:
    """The machine's memory, or the bound of the container that we are in."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in (CGROUPS / "memory.max", CGROUPS / "memory/memory.limit_in_bytes"):
        try:
            bound = int(path.read_text())
        except (OSError, ValueError):
            continue
        return min(whole, bound)
    return whole


def counters(own: str = "/proc/self/cgroup") -> list[Path]:
    """The files in which the kernel counts whom it has killed for memory, the nearest to this process first."""
    found = []
    try:
        lines = Path(own).read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, kinds, path = (*line.split(":", 2), "", "")[:3]
        if not kinds:
            found += [CGROUPS / path.lstrip("/") / "memory.events", CGROUPS / "memory.events"]
        elif "memory" in kinds.split(","):
            base = CGROUPS / "memory"
            found += [base / path.lstrip("/") / "memory.oom_control", base / "memory.oom_control"]
    return [*found, Path("/proc/vmstat")]


class KernelKills:
    """How many processes the kernel has killed for memory, here or, where that is not told, on the machine."""

    def __init__(self, places: list[Path] | None = None) -> None:
        self._count = -1
        for place in counters() if places is None else places:
            self._place = place
            self._count = self._read()
            if self._count >= 0:
                break

    def look(self) -> bool:
        """Whether there was one since the last look."""
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
    """Whether somebody had nearly all that he asked for; if he asked for nothing, nearly all that there is."""
    return peak_bytes >= NEAR * (limit_bytes or machine_bytes())
