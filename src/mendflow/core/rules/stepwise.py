"""Checks that go through all cornerstones, or through the past, one after the other.

Each is a generator that pauses after each of them. Whoever has nothing else to do calls it as a function; a server,
which has, takes its `pieces`, and lets others go first in between."""

from collections.abc import Callable, Generator
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Pieces = Generator[None, None, T]
"""Work in pieces, and what it gives at the end."""


class Stepwise(Generic[P, T]):
    """A function that can be done in pieces too."""

    def __init__(self, pieces: Callable[P, Pieces[T]]) -> None:
        self.pieces = pieces
        update_wrapper(self, pieces)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        work = self.pieces(*args, **kwargs)
        while True:
            try:
                next(work)
            except StopIteration as end:
                found: T = end.value
                return found
