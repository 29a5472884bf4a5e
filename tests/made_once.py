"""What takes long to make and is the same for many tests is made by one of the processes that run the tests; the others
wait for it and read it. Without this every process would make it anew."""

import fcntl
import pickle
from collections.abc import Callable
from typing import TypeVar

import pytest

Made = TypeVar("Made")


def made_once(folders: pytest.TempPathFactory, name: str, make: Callable[[], Made]) -> Made:
    """The value of `make`, by whichever process comes first in this run of the tests."""
    own = folders.getbasetemp()
    shared = own.parent if own.name.startswith("popen-") else own
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = shared / f"{name}.pickle"
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make()))
        made: Made = pickle.loads(kept.read_bytes())  # written above, by a process of this run
        return made
