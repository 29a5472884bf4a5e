"""What values refer to that are stored as files because of their size.

A job gets such a value whole, with the files that it refers to. So whoever says which files a job may read looks into
it, but only once it is known that the value itself has come to the case. One value at a time is taken into memory.
Stored content never changes: what was once found in a value is remembered by its digest."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Final

import msgspec

from mendflow.core.model.errors import Forbidden, RequestError, StoreUnavailable
from mendflow.core.model.values import FileRef, spilled_file
from mendflow.lazy import lazy_pattern
from mendflow.services.base.contracts import FileStore
from mendflow.services.domains.work_files import files_of_map, maps_in

BYTES_MAX: Final = 16 << 20
"""A value that refers to files is looked into up to this size: reading it keeps all others of the server waiting."""

TOGETHER_BYTES_MAX: Final = 256 << 20
"""So much is looked into for one question."""

REMEMBERED_MAX: Final = 100_000
"""So many references are remembered; a value that has none counts as one."""

_HINTS: Final = (b'"$', b'"\\u0024')
_KEYS: Final = ("$file", "$spilled")


def _spellings(key: str) -> str:
    """A key as JSON may write it: each character as it is, or by its number."""
    return "".join(rf"(?:{re.escape(each)}|\\u{ord(each):04x})" for each in key)


_SIGN: Final = lazy_pattern(f'"(?:{"|".join(map(_spellings, _KEYS))})"'.encode(), re.IGNORECASE)
"""A value without this has no reference in it."""

SIGN_BYTES: Final = 2 + 6 * max(map(len, _KEYS))


class _Inside(msgspec.Struct, frozen=True):
    """The files that a value refers to, and the digests of values inside it."""

    files: tuple[FileRef, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        return 1 + len(self.files) + len(self.values)


_NOTHING: Final = _Inside()


class SpilledValues:
    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._known: OrderedDict[str, _Inside] = OrderedDict()
        self._remembered = 0
        self._one_at_a_time = asyncio.Lock()

    async def files_by_depth(self, digests: Iterable[str]) -> AsyncIterator[list[FileRef]]:
        """The files that these values refer to, then those that values inside these do, and so on. Whoever asks refuses
        what did not come before asking for more, so that nobody learns what is in a value of others. Raises Forbidden
        if the values are too large to be looked into."""
        agenda = list(dict.fromkeys(digests))
        seen, room = set(agenda), TOGETHER_BYTES_MAX
        while agenda:
            found, deeper = list[FileRef](), dict[str, None]()
            for digest in agenda:
                inside, passed = await self._inside(digest, room)
                room -= passed
                found += inside.files
                deeper.update(dict.fromkeys(inside.values))
            yield found
            agenda = [each for each in deeper if each not in seen]
            seen.update(agenda)

    async def _inside(self, digest: str, room: int) -> tuple[_Inside, int]:
        """What is in a value, and how many bytes were taken into memory for that."""
        if (known := self._known.get(digest)) is not None:
            self._known.move_to_end(digest)
            return known, 0
        async with self._one_at_a_time:
            if (known := self._known.get(digest)) is not None:
                return known, 0
            return await self._look(digest, room)

    async def _look(self, digest: str, room: int) -> tuple[_Inside, int]:
        try:
            if not await self._has_signs(digest):
                self._remember(digest, _NOTHING)
                return _NOTHING, 0
            size = await self._files.size(digest) or 0
            if size > min(room, BYTES_MAX):
                raise Forbidden(
                    f"it has a value of more than {BYTES_MAX} bytes that refers to files, or more than"
                    f" {TOGETHER_BYTES_MAX} bytes of such values: give the files one by one"
                )
            body = b"".join([chunk async for chunk in self._files.read(digest)])
        except (Forbidden, StoreUnavailable):
            raise
        except RequestError:
            return _NOTHING, 0  # it is gone, or damaged: whoever needs it gets nothing
        inside = await asyncio.to_thread(_found_in, body)
        self._remember(digest, inside)
        return inside, len(body)

    async def _has_signs(self, digest: str) -> bool:
        end = b""
        async with aclosing(self._files.read(digest)) as chunks:
            async for chunk in chunks:
                looked_at = end + chunk
                if any(hint in looked_at for hint in _HINTS) and _SIGN.search(looked_at) is not None:
                    return True
                end = looked_at[1 - SIGN_BYTES :]
        return False

    def _remember(self, digest: str, inside: _Inside) -> None:
        if (before := self._known.pop(digest, None)) is not None:
            self._remembered -= before.weight
        self._known[digest] = inside
        self._remembered += inside.weight
        while self._remembered > REMEMBERED_MAX and len(self._known) > 1:
            self._remembered -= self._known.popitem(last=False)[1].weight


def _found_in(body: bytes) -> _Inside:
    """As a pilot reads it: what is no JSON is nothing to it."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _NOTHING
    files, values = dict[FileRef, None](), dict[str, None]()
    for each in maps_in(value):
        files.update(dict.fromkeys(files_of_map(each)))
        if (spilled := spilled_file(each)) is not None:
            values[spilled.sha256] = None
    return _Inside(tuple(files), tuple(values))
