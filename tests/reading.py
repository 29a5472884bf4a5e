"""Reading the tests costs most the first time: pytest rewrites the asserts of each file, Python compiles what it loads,
Hypothesis looks for constants. All of it is kept on disk for the next. So in a fresh clone one of the processes that
run the tests reads them first, and the others wait for it: they would else do the same work at the same time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.marked import TESTS

READ_LAST = TESTS / "transfer" / "__pycache__"
"""What the last folder of the tests has as soon as its files have been read once."""


@contextmanager
def one_reads_first(own: Path | None) -> Iterator[None]:
    """Wait here until the first reader is done, or be it. `own` is the folder for temporary files of this process, if
    there are several processes."""
    if own is None or not own.name.startswith("popen-") or READ_LAST.exists():
        yield
        return
    with (own.parent / "reading.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield
