"""How much of the machine's processor time programs used that are none of ours."""

import os
import resource
import time
from pathlib import Path
from types import TracebackType

BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class OtherPrograms:
    """Counts from its beginning to its end. What our processes took counts as ours once they were waited for."""

    def __enter__(self) -> "OtherPrograms":
        self._began_s, self._at_first_s = time.monotonic(), _used_by_others_s()
        self.share = 0.0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """`share` is that of all processors' time."""
        took_s = (time.monotonic() - self._began_s) * (os.cpu_count() or 1)
        self.share = (_used_by_others_s() - self._at_first_s) / took_s


def _used_by_others_s() -> float:
    given = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    ticks = dict(zip(FIELDS, map(int, given), strict=False))
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    all_s = sum(ticks[name] for name in BUSY) / os.sysconf("SC_CLK_TCK")
    return all_s - sum(each.ru_utime + each.ru_stime for each in ours)
