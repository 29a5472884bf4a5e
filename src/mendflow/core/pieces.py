"""Work in pieces: a rule is checked against all cornerstones, or against the past, and a large flow is compiled.

It is written as a generator that pauses. Whoever has nothing else to do has it done at once; a server, which has, lets
others go first after each piece."""

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


def done_at_once(pieces: Pieces[T]) -> T:
    work = PiecewiseWork(pieces)
    for _ in work:
        pass
    return work.result


class CooperativeFunction(Generic[P, T]):
    """A function that can be done at once, or in pieces."""

    def __init__(self, pieces: Callable[P, Pieces[T]]) -> None:
        self.pieces = pieces
        update_wrapper(self, pieces)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return done_at_once(self.pieces(*args, **kwargs))
