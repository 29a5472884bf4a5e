"""What this machine says of memory: how much there is, and whether the kernel has just killed somebody for it.

The kernel ends a job that goes too far with the same signal as anybody else would. Whom it killed it does not tell, but
it counts; and a job that was killed while it had nearly all that it might have leaves little doubt."""

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN = "/proc/self/cgroup"
NEAR = 0.9
"""From this part of what it may have a killed job is taken to have been killed for its memory."""


def machine_bytes(own: str = OWN) -> int:
    """The machine's memory, or less where the container or the batch job that we are in is bound to less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([whole, *(bound for folder in _groups(own) if (bound := _bound(folder)) is not None)])


def _bound(group: Path) -> int | None:
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            return int((group / name).read_text())
        except (OSError, ValueError):  # another kind of group, or one without a bound
            continue
    return None


def _groups(own: str) -> list[Path]:
    """The groups of this process by which the kernel bounds memory, and those around them, the innermost first."""
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
    """The files in which the kernel counts whom it has killed for memory, the nearest to this process first."""
    old = CGROUPS / "memory"
    files = [group / ("memory.oom_control" if group.is_relative_to(old) else "memory.events") for group in _groups(own)]
    return [*files, Path("/proc/vmstat")]


class OutOfMemoryKills:
    """How many processes the kernel has killed for memory, here or, where that is not told, on the machine."""

    def __init__(self, places: list[Path] | None = None) -> None:
        self._count = -1
        self._lately = False
        for place in counters() if places is None else places:
            self._place = place
            self._count = self._read()
            if self._count >= 0:
                break

    def heartbeat(self) -> None:
        """Called now and then while a job runs: it has outlived what the kernel did before the last pulse. Since then
        it may have lost a part of itself, and be about to end because of that."""
        self._lately = self._new()

    def look(self) -> bool:
        """Whether there was one since the last look, or since the pulse before the last."""
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
    """Whether somebody had nearly all that he asked for; if he asked for nothing, nearly all that there is."""
    return peak_bytes >= NEAR * (limit_bytes or machine_bytes())
