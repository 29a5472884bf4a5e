"""The chains of all servers on a store, as documents and streams.

stream    audit/SERVER/FIRST   the entries of a segment
document  audit-segment        a segment: written before its first entry
document  audit-chain          how long a chain is: written together with its newest entries
document  audit-cut            what went by age: written before the segments go
document  audit-gap            that a server was used which keeps no record"""

from collections.abc import AsyncIterator
from typing import Final, TypeVar

import msgspec

from mendflow.core.audit.chain import ChainCheck, ChainEnd, sha256_of
from mendflow.core.model.audit import (
    AUDIT_CHAIN_KIND,
    AUDIT_CUT_KIND,
    AUDIT_GAP_KIND,
    AUDIT_SEGMENT_KIND,
    AuditChain,
    AuditCut,
    AuditEntry,
    AuditGap,
    AuditSegment,
    ChainView,
)
from mendflow.core.model.ids import Instant
from mendflow.stores.contract import Store, StoredDocument

T = TypeVar("T")

PAGE: Final = 1000
decode_entry = msgspec.json.Decoder(AuditEntry).decode


def stream_of(segment: AuditSegment) -> str:
    return f"audit/{segment.server}/{segment.first}"


def segment_id(segment: AuditSegment) -> str:
    return f"{segment.server}/{segment.first:012d}"


class ChainStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def servers(self) -> list[str]:
        """The servers that have a chain, or the rest of one, or were used without."""
        found: set[str] = set()
        for kind in (AUDIT_CHAIN_KIND, AUDIT_CUT_KIND, AUDIT_GAP_KIND):
            found.update([document.id async for document in self._store.scan(kind)])
        async for document in self._store.scan(AUDIT_SEGMENT_KIND):
            found.add(document.id.rpartition("/")[0])
        return sorted(found)

    async def segments(self, server: str) -> list[AuditSegment]:
        """The segments of a chain that have not gone, the oldest first."""
        cut = await self.cut(server)
        found = [
            msgspec.json.decode(document.body, type=AuditSegment)
            async for document in self._store.scan(AUDIT_SEGMENT_KIND, f"{server}/")
        ]
        gone = cut.count if cut is not None else 0
        return sorted((each for each in found if each.first > gone and each.server == server), key=lambda x: x.first)

    async def cut(self, server: str) -> AuditCut | None:
        return _read(await self._store.get(AUDIT_CUT_KIND, server), AuditCut)

    async def has_any(self) -> bool:
        """Whether there is a chain of any server."""
        async for _ in self._store.scan(AUDIT_CHAIN_KIND):
            return True
        return False

    async def gap(self, server: str) -> tuple[AuditGap | None, int]:
        """How often the server was used without a record, and the version of the document that says so."""
        found = await self._store.get(AUDIT_GAP_KIND, server)
        return _read(found, AuditGap), found.version if found is not None else 0

    async def head(self, server: str) -> tuple[AuditChain | None, int]:
        """How long the chain is said to be, and the version of the document that says so."""
        found = await self._store.get(AUDIT_CHAIN_KIND, server)
        return _read(found, AuditChain), found.version if found is not None else 0

    async def end(self, server: str) -> ChainEnd:
        """Where the next entry goes, by what is stored."""
        segments = await self.segments(server)
        if not segments:
            cut = await self.cut(server)
            return ChainEnd(server, 0, cut.count + 1, cut.at, cut.sha256) if cut is not None else ChainEnd(server)
        last = segments[-1]
        length = await self._store.length(stream_of(last))
        if not length:
            return ChainEnd(server, last.first, last.first, last.at, last.previous)
        [entry] = await self._store.read(stream_of(last), length - 1, 1)
        return ChainEnd(server, last.first, last.first + length, decode_entry(entry).at, sha256_of(entry))

    async def entries(self, segment: AuditSegment) -> AsyncIterator[bytes]:
        """The entries of a segment as they are stored, the oldest first."""
        start = 0
        while page := await self._store.read(stream_of(segment), start, PAGE):
            for entry in page:
                yield entry
            start += len(page)

    async def newest_first(self, segment: AuditSegment) -> AsyncIterator[AuditEntry]:
        """The entries that can be read, the newest first. Whether one cannot, `check` tells."""
        end = await self._store.length(stream_of(segment))
        while end > 0:
            start = max(0, end - PAGE)
            for stored in reversed(await self._store.read(stream_of(segment), start, end - start)):
                try:
                    yield decode_entry(stored)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    continue
            end = start

    async def check(self, server: str) -> ChainView:
        """Look at every entry of a chain. What is added meanwhile is looked at too, or not; if entries have gone by
        age meanwhile, it is looked at again."""
        while True:
            cut = await self.cut(server)
            found = await self._check(server, cut)
            if not found.problem or await self.cut(server) == cut:
                return found

    async def _check(self, server: str, cut: AuditCut | None) -> ChainView:
        head, _ = await self.head(server)
        check = ChainCheck(server, cut, head)
        for segment in await self.segments(server):
            check.begin_segment(segment)
            async for entry in self.entries(segment):
                check.read(entry)
        gap, _ = await self.gap(server)
        if gap is None:
            return check.result()
        return msgspec.structs.replace(check.result(), unrecorded=gap.count, unrecorded_at=gap.at)

    async def export(self, since: int, until: int) -> AsyncIterator[bytes]:
        """The entries of all chains as they are stored, one in each line, chain by chain from the oldest on. One that
        cannot be read is there too, whatever its time was: it is evidence."""
        for server in await self.servers():
            segments = await self.segments(server)
            for segment, after in zip(segments, [*segments[1:], None], strict=True):
                if (after is not None and after.at < since) or (until and segment.at >= until):
                    continue
                async for entry in self.entries(segment):
                    at = _time_of(entry)
                    if at is None or since <= at < (until or 2**62):
                        yield entry + b"\n"


def _time_of(entry: bytes) -> Instant | None:
    try:
        return decode_entry(entry).at
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _read(found: StoredDocument | None, type: type[T]) -> T | None:
    return msgspec.json.decode(found.body, type=type) if found is not None else None
