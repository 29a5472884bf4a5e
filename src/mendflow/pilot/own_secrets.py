"""The token of a pilot or a server, which came in its environment, and that the jobs below it have no use for.

A system shows the environment that a process was started with to every process of the same user, as long as that memory
holds it: on Linux as /proc/PID/environ. So a secret is overwritten there once it was read. Python has a copy of its
own, which nobody else sees."""

import os
import sys
from typing import TYPE_CHECKING

from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = LazyModule("ctypes")


def take_secret(name: str) -> str:
    """The value of an environment variable, which other processes cannot read any more."""
    value = os.environ.get(name, "")
    if value and sys.platform == "linux":
        _overwrite(name)
    return value


def _overwrite(name: str) -> None:
    getenv = ctypes.CDLL(None).getenv
    getenv.argtypes, getenv.restype = (ctypes.c_char_p,), ctypes.c_void_p
    place = getenv(os.fsencode(name))
    if place:
        ctypes.memset(place, ord("*"), len(ctypes.string_at(place)))
