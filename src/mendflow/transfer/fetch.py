"""Fetches a file from any source: try, continue where the last try stopped, verify the whole, rename it into place.

Temporary errors are retried with growing pauses; others are raised at once, so that the caller can try another
source."""

import os
import random
import time
from collections.abc import Callable
from typing import Final

from mendflow.core.model.values import FileRef
from mendflow.transfer.errors import CannotResume, DamagedFile, TransferFailed
from mendflow.transfer.partial_files import PART, TransferSource, arrive, discard, move_into_place

PAUSE_S: Final = 0.2
PAUSE_S_MAX: Final = 10.0
PROGRESS_BYTES: Final = 1 << 20
"""A try that has brought this much more does not count: a bad connection still makes progress."""


def always() -> bool:
    return True


def pause(turn: int) -> None:
    """The pause before another try: growing, and randomized."""
    time.sleep(random.uniform(0.7, 1.0) * min(PAUSE_S * 2 ** (turn - 1), PAUSE_S_MAX))


def fetch_file(
    origin_of: Callable[[], TransferSource],
    target: str,
    ref: FileRef | None,
    *,
    tries: int,
    resume: bool = True,
    durable: bool = True,
    wanted: Callable[[], bool] = always,
) -> tuple[str, int]:
    """Fetch a file to `target`; returns its digest and size. With `ref` its content must match. A partial file is kept
    beside `target`, and with `ref` the next call continues it. `origin_of` is called for each try. A caller that hashes
    the file again after a crash does not need `durable`."""
    if not resume or ref is None:
        discard(target)
    turn, most, last = 0, 0, ""
    while True:
        try:
            origin = origin_of()
            if ref is None and origin.identity != last:
                discard(target)  # the partial file may be of another content
                last = origin.identity
            return _arrived(origin, target, ref, durable, wanted)
        except TransferFailed as error:
            reached = _size(target + PART)
            turn = 1 if reached >= most + PROGRESS_BYTES else turn + 1
            most = max(most, reached)
            if not error.passing:
                discard(target)
            if not error.passing or turn >= tries or not wanted():
                raise
        pause(turn)


def _arrived(
    origin: TransferSource, target: str, ref: FileRef | None, durable: bool, wanted: Callable[[], bool]
) -> tuple[str, int]:
    size = ref.bytes if ref is not None else -1
    if 0 <= size != origin.size >= 0:
        raise DamagedFile(f"it is damaged, or is another file: it has {origin.size} bytes instead of {size}")
    resume = ref is not None or bool(origin.identity)
    try:
        digest, found = arrive(origin, target, size=size, resume=resume, durable=durable, wanted=wanted)
    except CannotResume:
        digest, found = arrive(origin, target, size=size, resume=False, durable=durable, wanted=wanted)
    if ref is not None and digest != ref.sha256:
        discard(target)
        raise DamagedFile("it arrived damaged, or is another file: its digest is not the expected one", passing=True)
    move_into_place(target, durable=durable)
    return digest, found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
