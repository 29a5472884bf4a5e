"""Cases as people look for them. A case that lives here is looked at in memory, which is never behind the store."""

from collections.abc import Mapping

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.views import CaseQuery, Counts
from mendflow.core.query.names import CASES
from mendflow.services.base import paging as searching
from mendflow.services.base.paging import Found, Paging, Wanted, equals
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.stores.contract import Document, Store

_encode = msgspec.json.Encoder().encode

Living = Mapping[CaseId, LiveCase]


async def search(store: Store, living: Living, query: CaseQuery, now: Instant) -> Found:
    """The bodies of their documents; the newest first, if nothing else is said."""
    return await searching.find(store, _wanted(query, now), lambda document: _seen(living, document))


async def count(store: Store, living: Living, query: CaseQuery, by: str, now: Instant) -> Counts:
    counts, place, looked_at = await searching.count(
        store, _wanted(query, now), by, lambda document: _seen(living, document)
    )
    return Counts(counts=counts, next=place, looked_at=looked_at)


def _wanted(query: CaseQuery, now: Instant) -> Wanted:
    also = [equals(name, value) for name, value in (("flow", query.flow), ("status", query.status)) if value]
    return searching.wanted(
        CASES,
        query.where,
        also,
        Paging(query.limit, query.offset, query.after),
        now=now,
        order=query.order,
        usual="-started",
    )


def _seen(living: Living, document: Document) -> bytes:
    live = living.get(CaseId(document.id))
    if live is None:
        return document.body
    seen: CaseDocument = msgspec.structs.replace(live.document, counts=live.tally.counts())
    return _encode(seen)
