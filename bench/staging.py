"""What staging costs beside a plain copy of the same file, and beside a careful one, one right after the other.

A plain copy that is as safe is one that is on the disk when it is done: `cp`, then `sync`. Nobody knows whether it is
right; a careful user takes its digest as well, and that is what staging does. Where the disk is faster than SHA-256,
nothing that knows what it has can be as fast as a plain copy, so the digest alone is shown too.
`python -m bench.staging --write` puts the figures into docs/understand/benchmarks.md."""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.page import ruled, write_section
from bench.run import machine
from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import TransferFailed
from tests.servers import s3
from tests.transfer.web_server import web

MB = 1_000_000
SIZE_BYTES = 2 << 30
FAR_BYTES = 256 << 20
ROUNDS = 5
TRIES = 3
OBJECT_VOLUMES = 200
TITLE = "Staging beside a plain copy"
COLUMNS = ("way", "plain MB/s", "plain and SHA-256 MB/s", "staged MB/s", "staged / plain", "staged / plain and SHA-256")


class StagingVariants(NamedTuple):
    """Three ways for the same bytes: plain, plain and hashed afterwards, and ours. `clear` removes what they left."""

    name: str
    bytes: int
    plain: Callable[[], object]
    careful: Callable[[], object]
    staged: Callable[[], object]
    clear: Callable[[], object]


class StagingResult(NamedTuple):
    """Each the median of all rounds; the shares those of the rounds' own ratios, since others use the machine too.
    `left_out` says why there are no figures."""

    name: str
    plain_mb_s: float = 0.0
    careful_mb_s: float = 0.0
    staged_mb_s: float = 0.0
    of_plain: float = 0.0
    of_careful: float = 0.0
    left_out: str = ""


def measured(ways: StagingVariants, rounds: int) -> StagingResult:
    """A server that refuses again and again is told of, and the others are measured all the same."""
    took: tuple[list[float], list[float], list[float]] = ([], [], [])
    turns = list(zip(took, (ways.plain, ways.careful, ways.staged), strict=True))
    for number in range(rounds):
        first = number % len(turns)
        for rates, way in turns[first:] + turns[:first]:
            try:
                rates.append(ways.bytes / MB / timed(way, ways.clear))
            except (OSError, TransferFailed, subprocess.CalledProcessError) as error:
                return StagingResult(ways.name, left_out=f"{type(error).__name__}: {error}")
    plain, careful, staged = took
    return StagingResult(
        ways.name,
        statistics.median(plain),
        statistics.median(careful),
        statistics.median(staged),
        of_plain=statistics.median(ours / theirs for ours, theirs in zip(staged, plain, strict=True)),
        of_careful=statistics.median(ours / theirs for ours, theirs in zip(staged, careful, strict=True)),
    )


def timed(way: Callable[[], object], clear: Callable[[], object]) -> float:
    """The seconds of a try that went well; one that did not is none."""
    for left in range(TRIES - 1, -1, -1):
        try:
            clear()
            os.sync()
            began = time.perf_counter()
            way()
            return time.perf_counter() - began
        except (OSError, TransferFailed, subprocess.CalledProcessError):
            if not left:
                raise
            time.sleep(1)
    raise AssertionError("the last try returns or raises")


def written(path: Path, size: int) -> FileRef:
    """A file of chance bytes, and what it is."""
    digest, left = hashlib.sha256(), size
    with path.open("wb") as file:
        while left:
            piece = os.urandom(min(left, 16 << 20))
            digest.update(piece)
            file.write(piece)
            left -= len(piece)
    return FileRef(sha256=digest.hexdigest(), bytes=size, name=path.name)


def hashed(path: Path) -> None:
    """As quickly as it can be done: `sha256sum` is several times slower where it has no code for the processor."""
    with path.open("rb") as file:
        hashlib.file_digest(file, "sha256")


def on_disk(folder: Path, size: int) -> list[StagingVariants]:
    store, copy, source = folder / "store", folder / "copy", folder / "store" / "a"
    store.mkdir()
    ref = written(source, size)
    element = StorageClient(StorageElement(name="disk", url=store.as_uri()))
    url, target = f"{store.as_uri()}/a", f"{store.as_uri()}/b"

    def clear() -> None:
        """A large file on a storage element is not in this machine's memory, so no way finds it there."""
        for path in (copy, store / "b"):
            path.unlink(missing_ok=True)
        with source.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def plain() -> None:
        subprocess.run(["cp", source, copy], check=True)

    def checked() -> None:
        plain()
        hashed(copy)

    def safe() -> None:
        plain()
        subprocess.run(["sync", copy], check=True)

    def careful() -> None:
        checked()
        subprocess.run(["sync", copy], check=True)

    def publish() -> None:
        element.publish(str(source), target, ref)

    def fetch() -> None:
        element.fetch(url, str(copy), ref)

    return [
        StagingVariants("published: cp, sync", size, safe, careful, publish, clear),
        StagingVariants("brought, on the disk: cp, sync", size, safe, careful, fetch, clear),
        StagingVariants(
            "brought for a job: cp, left in memory", size, plain, checked, for_a_job(element, url, copy, ref), clear
        ),
        StagingVariants("SHA-256 alone: cp, sync", size, safe, careful, lambda: hashed(source), clear),
    ]


def for_a_job(element: StorageClient, url: str, target: Path, ref: FileRef) -> Callable[[], object]:
    return lambda: element.fetch(url, str(target), ref, durable=False)


def in_objects(folder: Path, size: int) -> list[StagingVariants]:
    source, copy = folder / "far", folder / "far copy"
    ref = written(source, size)
    server = s3.server(OBJECT_VOLUMES)
    storage, raw = server.element(), server.raw()
    element, here, there = StorageClient(storage, s3.ENVIRONMENT), f"{storage.url}/a", f"{storage.url}/b"
    element.publish(str(source), here, ref)

    def clear() -> None:
        copy.unlink(missing_ok=True)
        element.remove(there)

    def get() -> None:
        raw.get_file(here, str(copy))

    def get_checked() -> None:
        get()
        hashed(copy)

    def put() -> None:
        raw.put_file(str(source), there)

    def put_checked() -> None:
        hashed(source)
        put()

    def publish() -> None:
        element.publish(str(source), there, ref)

    return [
        StagingVariants("from S3: s3fs", size, get, get_checked, for_a_job(element, here, copy, ref), clear),
        StagingVariants("to S3: s3fs", size, put, put_checked, publish, clear),
    ]


def from_web(folder: Path, size: int, rounds: int) -> StagingResult:
    copy = folder / "web copy"
    content = os.urandom(size)
    ref = FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=size, name="file")

    def plain() -> None:
        with urllib.request.urlopen(server.url) as answer, copy.open("wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)

    def checked() -> None:
        plain()
        hashed(copy)

    def clear() -> None:
        copy.unlink(missing_ok=True)

    with web(content) as server:
        server.piece_bytes = 1 << 20
        element = StorageClient(StorageElement(name="web", url=server.url))
        staged = for_a_job(element, server.url, copy, ref)
        return measured(StagingVariants("from the web: urllib", size, plain, checked, staged, clear), rounds)


def measure(size: int, far: int, rounds: int, where: Path | None) -> list[StagingResult]:
    with tempfile.TemporaryDirectory(prefix="mendflow-bench-", dir=where) as name:
        folder = Path(name)
        found = [measured(ways, rounds) for ways in on_disk(folder, size)]
        found.append(from_web(folder, far, rounds))
        try:
            found += [measured(ways, rounds) for ways in in_objects(folder, far)]
        except (OSError, TransferFailed, AssertionError) as error:  # the last one if the server does not start
            found.append(StagingResult("S3", left_out=f"{type(error).__name__}: {error}"))
        return found


def rows(found: Sequence[StagingResult]) -> list[tuple[str, ...]]:
    return [
        (
            each.name,
            *(f"{rate:,.0f}" for rate in (each.plain_mb_s, each.careful_mb_s, each.staged_mb_s)),
            f"{each.of_plain:.0%}",
            f"{each.of_careful:.0%}",
        )
        for each in found
        if not each.left_out
    ]


def shown(found: Sequence[StagingResult]) -> str:
    left_out = [f"{each.name} is left out: {each.left_out[:200]}" for each in found if each.left_out]
    return "\n".join([ruled(COLUMNS, rows(found)), *(f"\n{line}" for line in left_out)])


def body(found: Sequence[StagingResult], size: int, far: int, rounds: int) -> str:
    lines = [
        f"`python -m bench.staging`: one file of {size / MB:,.0f} MB on a disk, one of {far / MB:,.0f} MB from servers",
        "on the same machine; after the colon what it is beside. The file on the disk is not in memory before. Staging",
        "hashes what it has written while it writes, and what is published is on the disk, checked and renamed when it",
        "is done. Who copies and then takes the digest, as staging must to know what it has, is in the second column.",
        "No way that hashes is faster than SHA-256 alone, which is shown too: where that is slower than the disk, a",
        "copy that nobody has checked is faster.",
        "",
        shown(found),
        "",
        f"Medians of {rounds} rounds, each way in turn: {machine()}; load {os.getloadavg()[0]:.1f} at the end.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.staging", description="Staging beside a plain copy.")
    parser.add_argument("--size", type=int, default=SIZE_BYTES, help="bytes of the file on the disk")
    parser.add_argument("--far", type=int, default=FAR_BYTES, help="bytes of the file from servers")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--where", type=Path, help="a folder on the disk that is measured")
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    parser.add_argument("--json", action="store_true", help="tell the numbers as JSON")
    options = parser.parse_args(arguments)
    found = measure(options.size, options.far, options.rounds, options.where)
    print(json.dumps([each._asdict() for each in found]) if options.json else shown(found))
    if options.write:
        write_section(TITLE, body(found, options.size, options.far, options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
