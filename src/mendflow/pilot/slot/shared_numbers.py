"""Whole numbers in memory that several processes share: one writes while others read.

A reader finds a number as it was before a write or as it is after it, and nothing between, because each is copied in
one piece. `struct` does not do that: it clears the bytes first and then writes one after the other, so now and then a
reader finds 0 or a part of the number, for as long as the writer has to wait for the processor."""

import mmap
import os
from pathlib import Path

NUMBER_BYTES = 8


def map_numbers(path: str | Path, count: int) -> memoryview:
    """The first numbers of a file; those that it does not have yet are 0. Release the view to let go of the memory."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size < count * NUMBER_BYTES:
            os.ftruncate(descriptor, count * NUMBER_BYTES)
        return memoryview(mmap.mmap(descriptor, count * NUMBER_BYTES)).cast("q")
    finally:
        os.close(descriptor)
