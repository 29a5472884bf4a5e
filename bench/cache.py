"""What a pilot's cache costs, and what its policies are worth.

Look-ups are measured on the shelf alone and on a disk, where each also looks at the file's seal. The policies are run
over three kinds of work: steps that each read what the one before has made, files of which a few are read most, and the
same with passes over everything in between. `python -m bench.cache --write` puts the figures into
docs/understand/benchmarks.md."""

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.page import ruled, write_section
from bench.run import machine
from mendflow.core.caching.policies import POLICIES
from mendflow.core.caching.space import CacheSpace
from mendflow.core.model.data import Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.shared import CacheOptions, SharedCache

MB = 1 << 20
FILES = 100_000
LARGE_BYTES = 256 * MB


class Read(NamedTuple):
    """A file that is asked for; `cost_ms` is what bringing it takes."""

    name: str
    bytes: int
    cost_ms: float


# look-ups


def on_the_shelf(policy: str, files: int) -> dict[str, float]:
    dice = random.Random(7)
    shelf = CacheSpace(files * MB, POLICIES[policy])
    names = [f"{number:064x}" for number in range(2 * files)]
    for name in names[:files]:
        shelf.put(name, MB)
    drawn = [names[dice.randrange(files)] for _ in range(files)]
    began = time.perf_counter()
    for name in drawn:
        shelf.use(name)
    used = time.perf_counter()
    for name in names[files:]:
        for victim in shelf.victims(MB) or ():
            shelf.evict(victim)
        shelf.put(name, MB)
    ended = time.perf_counter()
    return {"use_us": (used - began) / files * 1e6, "replace_us": (ended - used) / files * 1e6}


def on_the_disk(folder: Path, files: int = 2_000, asked: int = 20_000) -> dict[str, float]:
    cache = _opened(folder / "own", "own")
    digests = [_filled(cache, b"%d" % number) for number in range(files)]
    dice = random.Random(7)
    drawn = [digests[dice.randrange(files)] for _ in range(asked)]
    began = time.perf_counter()
    for digest in drawn:
        cache.disk.lookup(digest)
    found = time.perf_counter()
    for number, digest in enumerate(drawn[:files]):
        cache.disk.pin(digest)
        cache.disk.give(digest, str(folder / f"link{number}"), link=True)
    ended = time.perf_counter()
    began_again = time.perf_counter()
    _opened(folder / "own", "own")
    opened = time.perf_counter()
    return {
        "hit_us": (found - began) / asked * 1e6,
        "link_us": (ended - found) / files * 1e6,
        "restart_ms": (opened - began_again) * 1e3,
        "files": files,
    }


def large_file(folder: Path, size: int = LARGE_BYTES) -> dict[str, float]:
    """How one large file comes to a job, in MB a second: a copy from the own cache, a link to a neighbour's on the same
    host, which is hashed, and over the line from one of the site."""
    near, host, far = (_opened(folder / name, where) for name, where in (("a", "h1"), ("b", "h1"), ("c", "h2")))
    for cache in (near, far):
        cache.serve("http://127.0.0.1:1")
    content = os.urandom(MB) * (size // MB)
    digest = _filled(near, content)
    news = near.news(0)
    assert news is not None
    host.set_neighbours([Neighbour(PilotId("a"), "h1", news.folder)], 1)
    far.set_neighbours([Neighbour(PilotId("a"), "h1", "", news.address, news.key)], 1)
    near.disk.pin(digest)
    took = {
        "copy": _timed(lambda: near.disk.give(digest, str(folder / "copy"), link=False)),
        "host": _timed(lambda: _taken(host, digest)),
        "site": _timed(lambda: _taken(far, digest)),
        "sha256": _timed(lambda: hashlib.sha256(content)),
    }
    for cache in (near, far):
        cache.close()
    return {name: size / MB / seconds for name, seconds in took.items()}


def _opened(folder: Path, host: str) -> SharedCache:
    folder.mkdir(exist_ok=True)
    options = CacheOptions(space_bytes=4 << 30, threshold_bytes=0, share="site", address="127.0.0.1")
    return SharedCache(folder, options, host=host, first_version=1)


def _filled(cache: SharedCache, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    cache.disk.pin(digest)
    cache.disk.take_in(digest, lambda target: _write(target, content), size=len(content))
    cache.disk.release([digest])
    return digest


def _write(target: str, content: bytes) -> None:
    Path(target).write_bytes(content)


def _taken(cache: SharedCache, digest: str) -> None:
    def fetch(target: str) -> None:
        raise AssertionError(f"no neighbour gave {target}")

    cache.disk.pin(digest)
    cache.disk.take_in(digest, fetch)


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


# policies


def chain(dice: random.Random) -> Iterator[Read]:
    """Steps: each file is read by the next step soon after it was made, a merged one by a few, and then no more."""
    for step in range(4_000):
        made = [Read(f"s{step}.{part}", dice.randrange(20, 200) * MB, dice.uniform(50, 500)) for part in range(4)]
        yield from made
        yield from made
        merged = Read(f"m{step}", 400 * MB, 2_000)
        yield from [merged] * dice.randrange(1, 4)


def favourites(dice: random.Random) -> Iterator[Read]:
    """A few of many files are read most, some of them large, some from slow places."""
    files = [Read(f"f{number}", int(2 ** dice.uniform(20, 29)), 2 ** dice.uniform(3, 13)) for number in range(5_000)]
    for _ in range(60_000):
        yield files[min(int(dice.paretovariate(0.8)) - 1, len(files) - 1)]


def passes(dice: random.Random) -> Iterator[Read]:
    """The same, with a pass over a thousand files that are read once each, every now and then."""
    for number, read in enumerate(favourites(dice)):
        yield read
        if number % 5_000 == 4_999:
            yield from (Read(f"once{number}.{each}", 100 * MB, 500) for each in range(1_000))


WORK: dict[str, Callable[[random.Random], Iterator[Read]]] = {
    "chain": chain,
    "favourites": favourites,
    "passes": passes,
}


def worth(policy: str, work: str, size_bytes: int) -> dict[str, float]:
    """What part of the reads, of the bytes, and of the time to bring them the cache has saved."""
    shelf = CacheSpace(size_bytes, POLICIES[policy])
    hits, hit_bytes, hit_ms, reads, bytes, cost_ms = 0, 0, 0.0, 0, 0, 0.0
    for read in WORK[work](random.Random(7)):
        reads, bytes, cost_ms = reads + 1, bytes + read.bytes, cost_ms + read.cost_ms
        if read.name in shelf:
            shelf.use(read.name)
            hits, hit_bytes, hit_ms = hits + 1, hit_bytes + read.bytes, hit_ms + read.cost_ms
        elif (victims := shelf.victims(read.bytes)) is not None:
            for victim in victims:
                shelf.evict(victim)
            shelf.put(read.name, read.bytes, cost_ms=read.cost_ms)
    return {"reads": hits / reads, "bytes": hit_bytes / bytes, "time": hit_ms / cost_ms}


def measure(files: int = FILES) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="mendflow-bench-") as name:
        disk, large = on_the_disk(Path(name)), large_file(Path(name))
    return {
        "files": files,
        "shelf": {policy: on_the_shelf(policy, files) for policy in POLICIES},
        "disk": disk,
        "large_mb_s": large,
        "worth": {work: {policy: worth(policy, work, 10 << 30) for policy in POLICIES} for work in WORK},
    }


def section(found: dict[str, object]) -> str:
    shelf, disk, large, worths = found["shelf"], found["disk"], found["large_mb_s"], found["worth"]
    assert isinstance(shelf, dict) and isinstance(disk, dict) and isinstance(large, dict) and isinstance(worths, dict)
    rows: list[tuple[str, ...]] = [
        (
            policy,
            f"{shelf[policy]['use_us']:.1f}",
            f"{shelf[policy]['replace_us']:.1f}",
            *(
                f"{worths[work][policy]['reads']:.0%} / {worths[work][policy]['bytes']:.0%} "
                f"/ {worths[work][policy]['time']:.0%}"
                for work in WORK
            ),
        )
        for policy in POLICIES
    ]
    return "\n".join(
        [
            "`python -m bench.cache --write` made this section. On the shelf of a cache with "
            f"{found['files']:,} files, a use and a",
            "replacement; then what a cache of 10 GiB saves of reads / of bytes / of the time to bring them, for three "
            "kinds of work.",
            "",
            ruled(("policy", "µs a use", "µs a replacement", *WORK), rows),
            "",
            f"On a disk with {disk['files']:,.0f} files a look-up that finds its file takes {disk['hit_us']:.0f} µs, "
            f"with the look at its seal; a link",
            f"into a job's folder {disk['link_us']:.0f} µs; taking the cache over after a restart "
            f"{disk['restart_ms']:.0f} ms.",
            "",
            f"A file of {LARGE_BYTES // MB} MB comes to a job as a copy at {large['copy']:,.0f} MB/s, as a link to a "
            f"neighbour's, which is hashed once, at {large['host']:,.0f} MB/s,",
            f"and from another host of the site at {large['site']:,.0f} MB/s (both ends on this machine's "
            f"cores); SHA-256 alone",
            f"does {large['sha256']:,.0f} MB/s here. Machine: {machine()}; load {os.getloadavg()[0]:.1f} at the end.",
        ]
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cache", description="What a pilot's cache costs.")
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    options = parser.parse_args(arguments)
    found = measure()
    print(json.dumps(found, indent=2))
    if options.write:
        write_section("Caches of pilots", section(found))


if __name__ == "__main__":
    main(sys.argv[1:])
