"""Reads documents of which one that cannot be read must not keep the others from being used: those that a server reads
at its start, and those of a list.

Such a document was damaged, or a newer version of mendflow wrote it. It is left out and named in the log, once for each
version of it, and stays in the store as it is. Whoever would put another in its place asks `demand_readable` first.
What belongs to one case, or is asked for by its id, is not read in this way: there the error is the answer."""

import logging
from collections.abc import AsyncIterable, Callable, Iterable
from typing import Final, TypeVar

import msgspec

from mendflow.core.model.errors import Conflict
from mendflow.stores.contract import StoredDocument

log = logging.getLogger("mendflow.documents")

NOTED_MAX: Final = 10_000

_noted: dict[tuple[str, str, int], None] = {}  # what the log has already

Read = TypeVar("Read")
Decode = Callable[[bytes], Read]


def read_or_leave_out(found: StoredDocument, decode: Decode[Read], advice: str = "") -> Read | None:
    """The content of a document; None if it cannot be read. The `advice` is for the log."""
    try:
        return decode(found.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _note(found, error, advice)
        return None


def readable(found: Iterable[StoredDocument], decode: Decode[Read]) -> list[Read]:
    """The contents of those that can be read."""
    return [content for each in found if (content := read_or_leave_out(each, decode)) is not None]


async def readable_in(scan: AsyncIterable[StoredDocument], decode: Decode[Read]) -> list[tuple[StoredDocument, Read]]:
    """Those of all documents of a kind that can be read, with their contents."""
    return [(each, content) async for each in scan if (content := read_or_leave_out(each, decode)) is not None]


async def readable_by_id(scan: AsyncIterable[StoredDocument], decode: Decode[Read]) -> dict[str, Read]:
    """The contents of those that can be read, by id."""
    return {found.id: content for found, content in await readable_in(scan, decode)}


def demand_readable(found: StoredDocument | None, decode: Decode[object]) -> None:
    """Before something is put in the place of a document: refused if it cannot be read. What it says may hold where a
    newer version runs, and nobody here has seen it."""
    if found is not None and read_or_leave_out(found, decode) is None:
        raise Conflict(
            f"there is a {found.kind} {found.id!r:.100} already, which this version of mendflow cannot read; a newer"
            " one may have written it. It stays as it is: change it there, or remove it first"
        )


def _note(found: StoredDocument, error: Exception, advice: str) -> None:
    key = (found.kind, found.id, found.version)
    if key in _noted:
        return
    if len(_noted) >= NOTED_MAX:
        _noted.clear()
    _noted[key] = None
    log.error(
        "the %s %s cannot be read and is left out: %s; it was damaged, or a newer version of mendflow wrote it%s",
        found.kind,
        found.id,
        error,
        advice and f": {advice}",
    )
