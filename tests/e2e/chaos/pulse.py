"""How slow the machine is just now, for somebody who has something to do: a process of its own that does a small piece
of work again and again, and writes how many times as long it took as the processor was given to it.

What is promised within seconds is promised on a machine that has them. This tells one that is shared with others, and
gives half of the time or less, from a product that dawdles."""

import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WORK_S = 0.004
EVERY_S = 0.2


class Pulse:
    def __init__(self, file: Path) -> None:
        self._file = file

    def slowness(self, start_us: int, end_us: int) -> float:
        """How many times as long as on a machine of one's own work took within this span; 1 is as fast as it gets."""
        lines = [line.split() for line in self._file.read_text().splitlines()]
        moments = [int(at) for at, _ in lines]
        told = [float(times) for _, times in lines[bisect_left(moments, start_us) : bisect_right(moments, end_us)]]
        return max(1.0, sum(told) / len(told)) if told else 1.0


@contextmanager
def pulse(file: Path) -> Iterator[Pulse]:
    """Felt for as long as the block lasts."""
    process = subprocess.Popen([sys.executable, "-S", "-E", __file__, str(file)])
    try:
        yield Pulse(file)
    finally:
        process.kill()
        process.wait()


def beat() -> float:
    began, had = time.monotonic(), time.process_time()
    while time.process_time() - had < WORK_S:
        pass
    return (time.monotonic() - began) / (time.process_time() - had)


if __name__ == "__main__":
    with open(sys.argv[1], "a", buffering=1, encoding="utf-8") as lines:
        while True:
            lines.write(f"{time.monotonic_ns() // 1000} {beat():.2f}\n")
            time.sleep(EVERY_S)
