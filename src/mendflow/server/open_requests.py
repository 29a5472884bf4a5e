"""Requests that stay open for long: event streams and held pilot exchanges. Each registers here how it is ended, so
that a server that stops can end them all at once instead of waiting for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class OpenRequests:
    def __init__(self) -> None:
        self.stopping = False
        self._ends: dict[int, Callable[[], object]] = {}
        self._next = 0

    @contextmanager
    def hold(self, end: Callable[[], object]) -> Iterator[None]:
        """While the block lasts, `end` is called if the server stops."""
        self._next += 1
        key = self._next
        self._ends[key] = end
        if self.stopping:
            end()
        try:
            yield
        finally:
            del self._ends[key]

    def end_all(self) -> None:
        self.stopping = True
        for end in list(self._ends.values()):
            end()

    def __len__(self) -> int:
        return len(self._ends)
