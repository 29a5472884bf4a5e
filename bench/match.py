"""How long a match takes while a million jobs wait.

Each scene fills the queue anew and then asks for pilots of all sizes, those that fit few jobs or none among them. What
is taken is put back, so that every match sees the full million. The time is the wall clock's; the processor time beside
it tells how much of a long match was other programs' turn."""

import gc
import json
import random
import time
import tracemalloc
from collections.abc import Callable

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import JobQueue

JOBS = 1_000_000
GB = 1 << 30
NOW = 1_700_000_000_000


def plain(dice: random.Random, number: int) -> Resources:
    return Resources()


def common(dice: random.Random, number: int) -> Resources:
    """Some dozens of usual sizes."""
    return Resources(cpus=dice.choice((1, 1, 1, 2, 4, 8)), memory_bytes=dice.choice((0, 1, 2, 4, 16, 64)) * GB)


def varied(dice: random.Random, number: int) -> Resources:
    """A million shapes, no two alike."""
    return Resources(
        cpus=dice.choice((1, 1, 2, 4, 8, 16, 32)),
        memory_bytes=int(2 ** dice.uniform(26, 38)),
        disk_bytes=int(2 ** dice.uniform(26, 40)) if number % 3 == 0 else 0,
        gpus=dice.choice((0, 0, 0, 0, 1, 4)),
        wall_ms=int(2 ** dice.uniform(10, 28)) if number % 2 else 0,
    )


def too_large(dice: random.Random, number: int) -> Resources:
    """A million shapes that need more memory than any pilot has."""
    return Resources(cpus=dice.choice((1, 2, 4)), memory_bytes=int(2 ** dice.uniform(38.01, 42)))


def awkward(dice: random.Random, number: int) -> Resources:
    """Each needs little of one thing and far too much of another, so that the least of a shape says nothing."""
    least, most = int(2 ** dice.uniform(20, 28)), int(2 ** dice.uniform(38.01, 42))
    return Resources(memory_bytes=most if number % 2 else least, disk_bytes=least if number % 2 else most + (1 << 42))


def pinned(dice: random.Random, number: int) -> Resources:
    return Resources(memory_bytes=dice.choice((1, 2, 4)) * GB, site=f"site{dice.randrange(5000)}")


def shy(dice: random.Random, number: int) -> Resources:
    """Each keeps away from some hosts of its own, as jobs do that failed there."""
    hosts = tuple(f"host{dice.randrange(50)}" for _ in range(dice.randrange(4)))
    return Resources(memory_bytes=dice.choice((1, 2, 4)) * GB, avoid_hosts=hosts)


SCENES: dict[str, Callable[[random.Random, int], Resources]] = {
    "plain": plain,
    "common": common,
    "varied": varied,
    "too large": too_large,
    "awkward": awkward,
    "pinned": pinned,
    "shy": shy,
}


def offer(dice: random.Random) -> Offer:
    """A pilot of any size, as full as it may happen to be."""
    cpus = dice.choice((1, 2, 8, 32, 64))
    memory = dice.choice((1, 2, 8, 64, 256)) * GB
    disk = dice.choice((1, 100, 1000)) * GB
    return Offer(
        cpus=dice.uniform(0, cpus),
        memory_bytes=int(memory * dice.random()),
        disk_bytes=disk,
        gpus=dice.choice((0, 0, 1, 4)),
        ttl_ms=dice.choice((0, 60_000, 3_600_000)),
        site=f"site{dice.randrange(6000)}",
        host=f"host{dice.randrange(60)}",
        pilot=PilotId(f"p-{dice.randrange(1000)}"),
        whole=Capacity(slots=cpus, cpus=cpus, memory_bytes=memory, disk_bytes=disk, gpus=4),
    )


def scene(make: Callable[[random.Random, int], Resources], jobs: int, matches: int) -> dict[str, float]:
    dice = random.Random(7)
    needs = [make(dice, number) for number in range(jobs)]
    ids = [JobId(f"case-7f3k/{number}") for number in range(jobs)]
    by_id = dict(zip(ids, needs, strict=True))
    gc.collect()
    gc.freeze()
    queue = JobQueue()
    began = time.perf_counter()
    for number, id in enumerate(ids):
        queue.add(id, needs[number], number % 3, NOW + number // 100)
    add_us = (time.perf_counter() - began) / jobs * 1e6
    took_ms, cpu_ms, taken = [], [], 0
    for _ in range(matches):
        asked = offer(dice)
        cpu, began = time.thread_time(), time.perf_counter()
        got = queue.take(asked, 1, NOW + 10_000_000)
        took_ms.append((time.perf_counter() - began) * 1e3)
        cpu_ms.append((time.thread_time() - cpu) * 1e3)
        taken += len(got)
        for id in got:
            queue.add(id, by_id[id], 0, NOW)
    took_ms.sort()
    cpu_ms.sort()
    gc.unfreeze()
    return {
        "add_us": round(add_us, 2),
        "p50_ms": round(took_ms[matches // 2], 4),
        "p99_ms": round(took_ms[matches * 99 // 100], 4),
        "max_ms": round(took_ms[-1], 4),
        "cpu_p99_ms": round(cpu_ms[matches * 99 // 100], 4),
        "matched": taken / matches,
    }


def bulk(jobs: int = 200_000) -> dict[str, float]:
    """Plain jobs in and out, sixty-four at a time: the hot path."""
    queue, needs, room = JobQueue(), Resources(), Offer(cpus=64, memory_bytes=GB, disk_bytes=GB)
    ids = [JobId(f"case-7f3k/{number}") for number in range(jobs)]
    gc.collect()
    began = time.perf_counter()
    for id in ids:
        queue.add(id, needs, 0, NOW)
    added = time.perf_counter()
    while queue.take(room, 64, NOW):
        pass
    ended = time.perf_counter()
    return {"add_us": round((added - began) / jobs * 1e6, 2), "take_us": round((ended - added) / jobs * 1e6, 2)}


def memory(jobs: int = 100_000) -> float:
    """Bytes that the queue itself keeps for a waiting job."""
    ids = [JobId(f"case-7f3k/{number}") for number in range(jobs)]
    needs = Resources()
    tracemalloc.start()
    queue = JobQueue()
    for number, id in enumerate(ids):
        queue.add(id, needs, 0, NOW + number)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(queue) == jobs
    return round(size / jobs)


def measure(jobs: int = JOBS, matches: int = 2000) -> dict[str, object]:
    scenes = {name: scene(make, jobs, matches) for name, make in SCENES.items()}
    return {
        "jobs_waiting": jobs,
        "p99_ms": max(each["p99_ms"] for each in scenes.values()),
        "scenes": scenes,
        "bulk": bulk(),
        "bytes_a_job": memory(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
