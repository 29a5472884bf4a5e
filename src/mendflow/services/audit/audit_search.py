"""Searches in the chains of all servers: the newest entries first, page by page."""

import heapq
from collections.abc import AsyncIterator
from typing import Final

from mendflow.core.audit.chain import fits
from mendflow.core.model.audit import AuditEntry, AuditPage, AuditQuery, AuditSegment
from mendflow.core.model.errors import InvalidRequest
from mendflow.services.audit.chain_store import ChainStore

READ_MAX: Final = 50_000
"""So many entries are read for one page; the next one goes on from there."""

_Key = tuple[int, str, int]


async def search(chains: ChainStore, query: AuditQuery) -> AuditPage:
    """A page of the entries that fit. It may be short although more follow: then `next` says where to go on."""
    below = _key_in(query.after) if query.after else None
    until = min(query.until or 2**62, below[0] + 1 if below else 2**62)
    rows: list[AuditEntry] = []
    read = 0
    async for entry in _merged(chains, query.since, until):
        key = _key(entry)
        if below is not None and key >= below:
            continue
        read += 1
        if fits(entry, query):
            rows.append(entry)
        if len(rows) >= query.limit or read >= READ_MAX:
            return AuditPage(rows=rows, next="/".join(str(each) for each in (key[0], key[2], key[1])))
    return AuditPage(rows=rows)


async def _merged(chains: ChainStore, since: int, until: int) -> AsyncIterator[AuditEntry]:
    """The entries of all chains, from the newest on."""
    heap: list[tuple[int, str, int, AuditEntry, AsyncIterator[AuditEntry]]] = []
    for server in await chains.servers():
        await _push(heap, _newest_first(chains, await chains.segments(server), since, until))
    while heap:
        *_, entry, rest = heapq.heappop(heap)
        yield entry
        await _push(heap, rest)


async def _push(
    heap: list[tuple[int, str, int, AuditEntry, AsyncIterator[AuditEntry]]], entries: AsyncIterator[AuditEntry]
) -> None:
    async for entry in entries:
        at, server, number = _key(entry)
        # No two entries have the same server and number, so nothing further is compared.
        heapq.heappush(heap, (-at, _reversed(server), -number, entry, entries))
        return


def _reversed(text: str) -> str:
    """A text that is the greater, the smaller this one is."""
    return "".join(chr(0x10FFFF - ord(each)) for each in text) + chr(0x10FFFF)


async def _newest_first(
    chains: ChainStore, segments: list[AuditSegment], since: int, until: int
) -> AsyncIterator[AuditEntry]:
    for segment in reversed(segments):
        if segment.at >= until:
            continue  # all of it is too new
        async for entry in chains.newest_first(segment):
            if entry.at < since:
                return
            if entry.at < until:
                yield entry


def _key(entry: AuditEntry) -> _Key:
    return entry.at, entry.server, entry.number


def _key_in(text: str) -> _Key:
    at, _, rest = text.partition("/")
    number, _, server = rest.partition("/")
    if not (at.isdecimal() and number.isdecimal() and server):
        raise InvalidRequest("`after` is the header Mendflow-Next of the page before", field="after")
    return int(at), server, int(number)
