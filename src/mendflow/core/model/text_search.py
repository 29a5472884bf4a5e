"""Which of many texts are somewhere in some bytes, in a time that hardly grows with the number of texts.

A text of fifteen bytes has, wherever it stands, eight bytes together whose place is a multiple of eight. So bytes are
read as numbers of eight bytes, and only the texts that have one of these at their beginning are looked for. It is
likewise with four bytes and a text of seven. The numbers are compared by a set, in one call for all of the bytes."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, Literal

FEW: Final = 24
"""So many texts are looked for one after the other: that is faster."""
EIGHT: Final = 8
SHORT_BYTES: Final = 256
"""Of texts up to this length the beginnings at the end of bytes are looked for together."""


class _Windows:
    """Texts by the numbers that their first bytes have, as `code` of `width` bytes, from each of `width` places."""

    def __init__(self, code: Literal["I", "Q"], width: int) -> None:
        self._code, self._width = code, width
        self.least = 2 * width - 1
        self._texts: dict[int, list[int]] = {}

    def add(self, number: int, text: bytes) -> None:
        for at in range(self._width):
            known = self._texts.setdefault(memoryview(text[at : at + self._width]).cast(self._code)[0], [])
            if not known or known[-1] != number:
                known.append(number)

    @cached_property
    def _keys(self) -> frozenset[int]:
        return frozenset(self._texts)

    def possible(self, data: bytes) -> Iterable[int]:
        """The numbers of the texts that may be in these bytes."""
        if not self._texts or len(data) < self.least:
            return ()
        windows = memoryview(data)[: len(data) - len(data) % self._width].cast(self._code)
        return (number for key in self._keys.intersection(windows) for number in self._texts[key])


class TextSearch:
    """Looks for texts, which are told by their numbers."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = texts
        self._every = range(len(texts))

    @cached_property
    def _index(self) -> tuple[list[_Windows], list[int]]:
        """The windows, the widest first, and the texts that are too short for any."""
        windows, rest = [_Windows("Q", 8), _Windows("I", 4)], list[int]()
        for number, text in enumerate(self._texts):
            fitting = next((each for each in windows if len(text) >= each.least), None)
            if fitting is not None:
                fitting.add(number, text)
            else:
                rest.append(number)
        return windows, rest

    def found(self, data: bytes) -> list[int]:
        """The numbers of the texts that are in these bytes, in their order."""
        if len(self._texts) <= FEW:
            return [number for number in self._every if self._texts[number] in data]
        windows, rest = self._index
        possible = {*rest, *(number for each in windows for number in each.possible(data))}
        return sorted(number for number in possible if self._texts[number] in data)

    @cached_property
    def _beginnings(self) -> tuple[dict[int, list[int]], dict[bytes, int], list[int]]:
        """Texts by their first eight bytes; one for each shorter beginning; and those of another length."""
        whole, shorter, rest = dict[int, list[int]](), dict[bytes, int](), list[int]()
        for number, text in enumerate(self._texts):
            if not EIGHT <= len(text) <= SHORT_BYTES:
                rest.append(number)
                continue
            whole.setdefault(memoryview(text[:EIGHT]).cast("Q")[0], []).append(number)
            for length in range(1, EIGHT):
                shorter.setdefault(text[:length], number)
        return whole, shorter, rest

    def may_begin(self, tail: bytes) -> Iterable[int]:
        """The numbers of the texts that may begin within these bytes, at whose end more is to come. Of those that have
        only their first few bytes there, one stands for all."""
        if len(self._texts) <= FEW:
            return self._every
        whole, shorter, rest = self._beginnings
        found, tail = {*rest}, tail[-SHORT_BYTES:]
        for at in range(min(EIGHT, max(0, len(tail) - EIGHT + 1))):
            windows = memoryview(tail)[at : len(tail) - (len(tail) - at) % EIGHT].cast("Q")
            found.update(number for key in windows if key in whole for number in whole[key])
        lengths = range(min(EIGHT - 1, len(tail)), 0, -1)
        if (longest := next((each for each in lengths if tail[-each:] in shorter), 0)) > 0:
            found.add(shorter[tail[-longest:]])
        return found
