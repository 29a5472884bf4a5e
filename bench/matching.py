"""How long a match takes when jobs read files and pilots have caches.

A million jobs wait, each with inputs; ten thousand pilots, eight on a host, have a hundred files each. Each scene says
which files jobs read and pilots have. Pilots ask in turn; what is taken is put back, so that every match sees the full
million. The time is the wall clock's; the processor time beside it tells how much of a long match was other programs'
turn. `python -m bench.matching --write` puts the figures into docs/understand/benchmarks.md."""

import argparse
import gc
import json
import os
import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

from bench.page import ruled, write_section
from bench.run import machine
from mendflow.core.model.data import CachedFile, CacheUpdate
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.cache_index import file_key
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import JobQueue

JOBS, PILOTS, FILES = 1_000_000, 10_000, 100
PILOTS_A_HOST = 8
GB = 1 << 30
NOW = 1_700_000_000_000
WHOLE = Capacity(slots=8, cpus=8, memory_bytes=32 * GB, disk_bytes=100 * GB)

Draw = Callable[[random.Random], int]


class MatchScene(NamedTuple):
    """`job` and `pilot` draw a file that a job reads, or that a pilot has, by its number. `common` files are read by
    every job and had by every pilot. Of the pilots, `idle` parts in ten have nothing to do."""

    tells: str
    inputs: int
    job: Draw
    pilot: Draw
    common: int = 0
    idle: int = 0
    varied: bool = False


def even(files: int) -> Draw:
    return lambda dice: dice.randrange(files)


def uneven(files: int) -> Draw:
    """Some files are wanted by very many, most by few."""
    return lambda dice: int(files * dice.random() ** 4)


SCENES = {
    "spread": MatchScene("each of a million files is read by a few", 3, even(1_000_000), even(1_000_000)),
    "popular": MatchScene("some files are read by thousands, most by few", 3, uneven(100_000), uneven(100_000)),
    "calibration": MatchScene("and one file by all, which all have", 2, uneven(100_000), uneven(100_000), common=1),
    "nothing there": MatchScene(
        "no pilot has any of it", 2, even(1_000_000), lambda dice: dice.randrange(1 << 30, 1 << 31)
    ),
    "idle holders": MatchScene("half of the pilots are idle", 3, uneven(100_000), uneven(100_000), common=1, idle=5),
    "all sizes": MatchScene("and no two jobs need the same", 3, uneven(100_000), uneven(100_000), varied=True),
}


def digest(number: int) -> str:
    """Spread as digests are."""
    return f"{number * 0x9E3779B97F4A7C15 % (1 << 60):015x}"


def size(number: int) -> int:
    return 1_000_000 * (1 + number % 4_000)


class MatchWorld:
    """A scene, set up."""

    def __init__(self, scene: MatchScene, jobs: int, pilots: int) -> None:
        self.dice = random.Random(7)
        self.scene = scene
        self.queue = JobQueue()
        self.pilots = [PilotId(f"p-{number}") for number in range(pilots)]
        self.common = tuple(range(1 << 31, (1 << 31) + scene.common))
        for number, pilot in enumerate(self.pilots):
            held = {*self.common, *(scene.pilot(self.dice) for _ in range(FILES - scene.common))}
            added = [CachedFile(digest(file), size(file)) for file in held]
            news = CacheUpdate(version=1, base=0, added=added)
            self.queue.caches.hear(pilot, news, f"host{number // PILOTS_A_HOST}")
        drawn = [self._job(number) for number in range(jobs)]
        self.jobs = {JobId(f"case-7f3k/{number}"): job for number, job in enumerate(drawn)}
        gc.collect()
        gc.freeze()
        began = time.perf_counter()
        for number, (id, (needs, files)) in enumerate(self.jobs.items()):
            self.queue.add(id, needs, number % 3, NOW + number // 100, files=files)
        self.add_us = (time.perf_counter() - began) / jobs * 1e6

    def _job(self, number: int) -> tuple[Resources, tuple[int, ...]]:
        dice, scene = self.dice, self.scene
        memory = int(2 ** dice.uniform(26, 38)) if scene.varied else dice.choice((0, 1, 2, 4)) * GB
        drawn = {*self.common, *(scene.job(dice) for _ in range(scene.inputs - scene.common))}
        return Resources(cpus=1 + number % 2, memory_bytes=memory), tuple(file_key(digest(file)) for file in drawn)

    def offer(self, number: int, idle_ms: int = 0) -> Offer:
        return Offer(
            cpus=self.dice.choice((1, 2, 8)),
            memory_bytes=self.dice.choice((2, 8, 32)) * GB,
            disk_bytes=100 * GB,
            host=f"host{number // PILOTS_A_HOST}",
            pilot=self.pilots[number],
            whole=WHOLE,
            idle_ms=idle_ms,
        )

    def let_idle(self) -> None:
        """These pilots are about to ask, and never do."""
        for number in range(len(self.pilots)):
            if number % 10 < self.scene.idle:
                self.queue.expect(self.offer(number, idle_ms=1 << 40), 1, NOW)


def scene(which: MatchScene, jobs: int, pilots: int, matches: int) -> dict[str, float]:
    world = MatchWorld(which, jobs, pilots)
    world.let_idle()
    queue, took_ms, cpu_ms, taken, lookup = world.queue, [], [], 0, 0
    asking = [number for number in range(pilots) if number % 10 >= which.idle]
    for _ in range(matches):
        asked = world.offer(world.dice.choice(asking))
        cpu, began = time.thread_time(), time.perf_counter()
        got = queue.take(asked, 1, NOW + 1_000_000)
        took_ms.append((time.perf_counter() - began) * 1e3)
        cpu_ms.append((time.thread_time() - cpu) * 1e3)
        taken += len(got)
        lookup += sum(bool(queue.chosen[id].bytes) for id in got if id in queue.chosen)
        for id in got:
            needs, files = world.jobs[id]
            queue.add(id, needs, 0, NOW, files=files)
    took_ms.sort()
    cpu_ms.sort()
    gc.unfreeze()
    return {
        "add_us": round(world.add_us, 2),
        "p50_ms": round(took_ms[matches // 2], 4),
        "p99_ms": round(took_ms[matches * 99 // 100], 4),
        "max_ms": round(took_ms[-1], 4),
        "cpu_p99_ms": round(cpu_ms[matches * 99 // 100], 4),
        "matched": taken / matches,
        "with_data": round(lookup / max(1, taken), 3),
    }


def memory(jobs: int = 50_000, files: int = 50_000, pilots: int = 500) -> dict[str, int]:
    """Bytes that the queue itself keeps: for a waiting job with three inputs, which few others read, beyond one without
    any; and for a file in a pilot's cache."""
    dice = random.Random(7)
    drawn = [{digest(dice.randrange(files)) for _ in range(3)} for _ in range(jobs)]
    ids, needs = [JobId(f"case-7f3k/{number}") for number in range(jobs)], Resources()
    tracemalloc.start()
    queue = JobQueue()
    for number, id in enumerate(ids):
        queue.add(id, needs, 0, NOW + number)
    plain, _ = tracemalloc.get_traced_memory()
    del queue
    queue, (before, _) = JobQueue(), tracemalloc.get_traced_memory()
    for number, id in enumerate(ids):
        queue.add(id, needs, 0, NOW + number, files=tuple(map(file_key, drawn[number])))
    wanted, _ = tracemalloc.get_traced_memory()
    for number in range(pilots):
        added = [CachedFile(digest(dice.randrange(files)), 1_000_000 + number) for _ in range(FILES)]
        queue.caches.hear(PilotId(f"p-{number}"), CacheUpdate(version=1, base=0, added=added), f"h{number // 8}")
        del added
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "a_job_without_inputs": plain // jobs,
        "a_job_with_three": (wanted - before) // jobs,
        "a_file_in_a_cache": (held - wanted) // (pilots * FILES),
    }


def measure(jobs: int = JOBS, pilots: int = PILOTS, matches: int = 3_000) -> dict[str, object]:
    scenes = {name: scene(which, jobs, pilots, matches) for name, which in SCENES.items()}
    return {
        "jobs_waiting": jobs,
        "pilots": pilots,
        "files_a_pilot": FILES,
        "p99_ms": max(each["p99_ms"] for each in scenes.values()),
        "scenes": scenes,
        "bytes": memory(),
    }


def section(found: dict[str, object]) -> str:
    scenes, kept = found["scenes"], found["bytes"]
    assert isinstance(scenes, dict) and isinstance(kept, dict)
    rows: list[tuple[str, ...]] = [
        (
            f"{name}: {SCENES[name].tells}",
            f"{each['p50_ms']:.3f}",
            f"{each['p99_ms']:.3f}",
            f"{each['cpu_p99_ms']:.3f}",
            f"{each['with_data']:.0%}",
            f"{each['add_us']:.1f}",
        )
        for name, each in scenes.items()
    ]
    columns = ("scene", "half within ms", "99 % within ms", "of processor time", "matched by data", "µs to put in")
    return "\n".join(
        [
            "`python -m bench.matching --write` made this section. A pilot asks for one job while "
            f"{found['jobs_waiting']:,} wait,",
            f"all with inputs; {found['pilots']:,} pilots, {PILOTS_A_HOST} on a host, have {FILES} files each.",
            "",
            ruled(columns, rows),
            "",
            f"The queue keeps {kept['a_job_with_three']} bytes for a waiting job with three inputs, "
            f"{kept['a_job_without_inputs']} for one without any,",
            f"and {kept['a_file_in_a_cache']} for a file in a pilot's cache. Where other programs have their "
            "turn in the middle of a match,",
            f"the processor time tells what the match took. Machine: {machine()}; load {os.getloadavg()[0]:.1f} at the "
            "end.",
        ]
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matching", description="Matches with a look at the data.")
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    options = parser.parse_args(arguments)
    found = measure()
    print(json.dumps(found, indent=2))
    if options.write:
        write_section("Matching jobs to where their data is", section(found))


if __name__ == "__main__":
    main(sys.argv[1:])
