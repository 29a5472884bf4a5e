"""Keeps Python alive beside the library that evaluates conditions.

The library gives each null away as a None that it does not own, and so takes a reference to None every time: a process
that evaluates for long would be ended by Python when none is left. From Python 3.12 on None is not counted."""

import ctypes
import sys

ENOUGH = 1 << 48
"""More references than anybody can take."""


def add_references() -> None:
    """Give None more references than the library can take. Called before the library is first used."""
    if sys.version_info < (3, 12):
        ctypes.c_ssize_t.from_address(id(None)).value += ENOUGH
