"""Functions that can run cooperatively: they check a rule against all cornerstones, or against the past, and let others
go first after each of them.

Such a function is written as a generator that pauses. Whoever has nothing else to do calls it; a server, which has,
takes its `pieces`, and lets others go first in between."""

from collections.abc import Callable, Generator, Iterator
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Pieces = Generator[None, None, T]
"""Work in pieces, and what it gives at the end."""


class PiecewiseWork(Generic[T]):
    """Work in pieces: each round of a loop over it does one more, and then there is its `result`."""

    result: T

    def __init__(self, pieces: Pieces[T]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[None]:
        self.result = yield from self._pieces


class CooperativeFunction(Generic[P, T]):
    """A function that can be done at once, or in pieces."""

    def __init__(self, pieces: Callable[P, Pieces[T]]) -> None:
        self.pieces = pieces
        update_wrapper(self, pieces)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        work = PiecewiseWork(self.pieces(*args, **kwargs))
        for _ in work:
            pass
        return work.result
