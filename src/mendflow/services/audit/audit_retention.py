"""Entries that are old go, in whole segments. What is left stays verifiable: the count and the hash of what went are
noted before anything goes, and the next entry continues from there. Any server may do it, for all chains."""

from itertools import pairwise

import msgspec

from mendflow.core.model.audit import AUDIT_CUT_KIND, AUDIT_SEGMENT_KIND, AuditCut, AuditSegment
from mendflow.core.model.ids import Instant
from mendflow.services.audit.chain_store import ChainStore, segment_id, stream_of
from mendflow.stores.contract import Delete, Put, RemoveStream, Store, WriteConflict

_encode = msgspec.json.Encoder().encode


async def cut_before(store: Store, instant: Instant) -> dict[str, int]:
    """Remove the segments all of whose entries are older; how many entries went, by server. A chain that is broken is
    left as it is: it is evidence."""
    chains = ChainStore(store)
    gone: dict[str, int] = {}
    for server in await chains.servers():
        await _remove_leftovers(store, server)
        segments = await chains.segments(server)
        # A segment is over when the next one begins; the last one stays.
        old = [each for each, after in pairwise(segments) if after.at <= instant]
        if not old or (await chains.check(server)).problem:
            continue
        after = segments[len(old)]
        found = await store.get(AUDIT_CUT_KIND, server)
        cut = AuditCut(server=server, count=after.first - 1, sha256=after.previous, at=after.at)
        [result] = await store.write(
            [Put(AUDIT_CUT_KIND, server, _encode(cut), found.version if found is not None else 0)]
        )
        if isinstance(result, WriteConflict):
            continue  # another server does the same
        gone[server] = after.first - old[0].first
        await _remove_leftovers(store, server)
    return gone


async def _remove_leftovers(store: Store, server: str) -> None:
    """Remove what lies before the cut, also where an earlier removal was interrupted."""
    cut = await ChainStore(store).cut(server)
    if cut is None:
        return
    old = [
        (document, segment)
        async for document in store.scan(AUDIT_SEGMENT_KIND, f"{server}/")
        if (segment := msgspec.json.decode(document.body, type=AuditSegment)).first <= cut.count
    ]
    for document, segment in old:
        await store.write(
            [RemoveStream(stream_of(segment)), Delete(AUDIT_SEGMENT_KIND, segment_id(segment), document.version)]
        )
