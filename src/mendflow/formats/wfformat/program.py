"""The stand-in for a task: a short shell command that reads its inputs, sleeps for its time and writes its outputs.

A file's content follows from its name and size, and starts with a unique mark: so no two files of a trace are equal to
a cache, the same trace makes the same bytes each time, and initial files can be generated."""

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

MARK_CHARS: Final = 32
CHUNK_BYTES: Final = 1 << 20
INPUTS: Final = "in"
"""The folder that a task finds its inputs in."""


def mark_of(file: str) -> str:
    return hashlib.sha256(file.encode()).hexdigest()[:MARK_CHARS]


def content_of(file: str, size: int) -> Iterator[bytes]:
    """The file's bytes, piece by piece."""
    mark = mark_of(file).encode()[:size]
    yield mark
    zeros = bytes(CHUNK_BYTES)
    for left in range(size - len(mark), 0, -CHUNK_BYTES):
        yield zeros[:left]


def digest_of(file: str, size: int) -> str:
    digest = hashlib.sha256()
    for piece in content_of(file, size):
        digest.update(piece)
    return digest.hexdigest()


def command_for(seconds: float, *, reads: bool, makes: Mapping[str, tuple[str, int]]) -> str:
    """The command of a task; `makes` maps paths to the file that is to stand there and its size."""
    lines = ["set -e"]
    if reads:
        lines.append(f"cat {INPUTS}/* > /dev/null")
    if seconds >= 0.0005:
        lines.append(f"sleep {seconds:.3f}")
    for path, (file, size) in makes.items():
        target, mark = shlex.quote(path), mark_of(file)[:size]
        zeros = size - len(mark)
        lines.append(
            f"{{ printf {mark}; head -c {zeros} /dev/zero; }} > {target}" if zeros else f"printf '{mark}' > {target}"
        )
    return "\n".join(lines) + "\n"
