"""What staging costs beside a plain copy of the same file, one right after the other.

A plain copy that is as good is one that is on the disk when it is done: `cp`, then `sync`. One that is left in memory
is faster than the digest of its content can be taken, and nobody knows whether it is right; it is shown too, and so is
the digest alone. `python -m bench.staging --write` puts the figures into docs/benchmarks.md."""

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
from mendflow.transfer.element import Element
from tests.servers import s3
from tests.transfer.web_server import web

MB = 1_000_000
SIZE_BYTES = 2 << 30
FAR_BYTES = 256 << 20
ROUNDS = 5
TITLE = "Staging beside a plain copy"
COLUMNS = ("way", "plain MB/s", "staged MB/s", "staged / plain")


class Pair(NamedTuple):
    """Two ways for the same bytes; `clear` removes what they left."""

    name: str
    bytes: int
    plain: Callable[[], object]
    staged: Callable[[], object]
    clear: Callable[[], object]


class Measured(NamedTuple):
    """Each the median of all rounds; `share` that of the rounds' own ratios, since others use the machine too."""

    name: str
    plain_mb_s: float
    staged_mb_s: float
    share: float


def measured(pair: Pair, rounds: int) -> Measured:
    plain: list[float] = []
    staged: list[float] = []
    for turn in range(rounds):
        ways = [(plain, pair.plain), (staged, pair.staged)]
        for took, way in ways if turn % 2 else ways[::-1]:
            pair.clear()
            os.sync()
            began = time.perf_counter()
            way()
            took.append(pair.bytes / MB / (time.perf_counter() - began))
    shares = [ours / theirs for ours, theirs in zip(staged, plain, strict=True)]
    return Measured(pair.name, statistics.median(plain), statistics.median(staged), statistics.median(shares))


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


def on_disk(folder: Path, size: int) -> list[Pair]:
    store, copy, source = folder / "store", folder / "copy", folder / "store" / "a"
    store.mkdir()
    ref = written(source, size)
    element = Element(StorageElement(name="disk", url=store.as_uri()))
    url, target = f"{store.as_uri()}/a", f"{store.as_uri()}/b"

    def clear() -> None:
        """A large file on a storage element is not in this machine's memory, so neither way finds it there."""
        for path in (copy, store / "b"):
            path.unlink(missing_ok=True)
        with source.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def plain() -> None:
        subprocess.run(["cp", source, copy], check=True)

    def safe() -> None:
        plain()
        subprocess.run(["sync", copy], check=True)

    def checked() -> None:
        plain()
        subprocess.run(["sha256sum", copy], check=True, stdout=subprocess.DEVNULL)

    def digest() -> None:
        with source.open("rb") as file:
            hashlib.file_digest(file, "sha256")

    return [
        Pair("published: cp, sync", size, safe, lambda: element.publish(str(source), target, ref), clear),
        Pair("brought, on the disk: cp, sync", size, safe, lambda: element.fetch(url, str(copy), ref), clear),
        Pair("brought: cp, sha256sum", size, checked, lambda: _for_a_job(element, url, copy, ref), clear),
        Pair("brought: cp alone, in memory", size, plain, lambda: _for_a_job(element, url, copy, ref), clear),
        Pair("SHA-256 alone: cp alone, in memory", size, plain, digest, clear),
    ]


def _for_a_job(element: Element, url: str, target: Path, ref: FileRef) -> None:
    element.fetch(url, str(target), ref, durable=False)


def in_objects(folder: Path, size: int) -> list[Pair]:
    source, copy = folder / "far", folder / "far copy"
    ref = written(source, size)
    storage, raw = s3.server().element(), s3.server().raw()
    element = Element(storage, s3.ENVIRONMENT)
    element.publish(str(source), f"{storage.url}/a", ref)

    def clear() -> None:
        copy.unlink(missing_ok=True)
        element.remove(f"{storage.url}/b")

    return [
        Pair(
            "from S3: s3fs",
            size,
            lambda: raw.get_file(f"{storage.url}/a", str(copy)),
            lambda: _for_a_job(element, f"{storage.url}/a", copy, ref),
            clear,
        ),
        Pair(
            "to S3: s3fs",
            size,
            lambda: raw.put_file(str(source), f"{storage.url}/b"),
            lambda: element.publish(str(source), f"{storage.url}/b", ref),
            clear,
        ),
    ]


def from_web(folder: Path, size: int, rounds: int) -> Measured:
    copy = folder / "web copy"
    content = os.urandom(size)
    ref = FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=size, name="file")

    def plain(url: str) -> None:
        with urllib.request.urlopen(url) as answer, copy.open("wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)

    with web(content) as server:
        server.piece_bytes = 1 << 20
        element = Element(StorageElement(name="web", url=server.url))
        pair = Pair(
            "from the web: urllib",
            size,
            lambda: plain(server.url),
            lambda: _for_a_job(element, server.url, copy, ref),
            lambda: copy.unlink(missing_ok=True),
        )
        return measured(pair, rounds)


def measure(size: int, far: int, rounds: int, where: Path | None) -> list[Measured]:
    with tempfile.TemporaryDirectory(prefix="mendflow-bench-", dir=where) as name:
        folder = Path(name)
        found = [measured(pair, rounds) for pair in on_disk(folder, size)]
        found.append(from_web(folder, far, rounds))
        return found + [measured(pair, rounds) for pair in in_objects(folder, far)]


def rows(found: Sequence[Measured]) -> list[tuple[str, ...]]:
    return [(each.name, f"{each.plain_mb_s:,.0f}", f"{each.staged_mb_s:,.0f}", f"{each.share:.0%}") for each in found]


def body(found: Sequence[Measured], size: int, far: int, rounds: int) -> str:
    lines = [
        f"`python -m bench.staging`: one file of {size / MB:,.0f} MB on a disk, one of {far / MB:,.0f} MB from servers",
        "on the same machine; after the colon what it is beside. The file on the disk is not in memory before. Staging",
        "hashes what it has written, and what is published is on the disk, checked and renamed when it is done. Where",
        "a copy only goes to memory, SHA-256 may be the limit: it is shown alone too.",
        "",
        ruled(COLUMNS, rows(found)),
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
    parser.add_argument("--write", action="store_true", help="write the section in docs/benchmarks.md")
    parser.add_argument("--json", action="store_true", help="tell the numbers as JSON")
    options = parser.parse_args(arguments)
    found = measure(options.size, options.far, options.rounds, options.where)
    print(json.dumps([each._asdict() for each in found]) if options.json else ruled(COLUMNS, rows(found)))
    if options.write:
        write_section(TITLE, body(found, options.size, options.far, options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
