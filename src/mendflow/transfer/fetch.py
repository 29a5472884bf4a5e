"""One way to bring a file from anywhere: try, go on where the last try ended, look at the whole, put it in its place.

What is passing is tried again, with growing pauses; what is not is said at once, so that whoever asked can look
elsewhere."""

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
"""A try that has brought so much more does not count: a bad line is still a line."""


def always() -> bool:
    return True


def pause(turn: int) -> None:
    """Before another try: longer each time, and not the same for all who wait."""
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
    """Bring a file to `target`: its digest and its size. With `ref` it has that content, or it does not come. What a
    try has brought is kept beside `target`, and with `ref` the next call goes on from there. `origin_of` is asked at
    each try. One who hashes the file again before he trusts it after a crash needs nothing `durable`."""
    if not resume or ref is None:
        discard(target)
    turn, most, last = 0, 0, ""
    while True:
        try:
            origin = origin_of()
            if ref is None and origin.identity != last:
                discard(target)  # what was brought so far may be of another content
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
        raise DamagedFile(f"it arrived damaged, or is another file: its digest is {digest[:12]}", passing=True)
    move_into_place(target, durable=durable)
    return digest, found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
