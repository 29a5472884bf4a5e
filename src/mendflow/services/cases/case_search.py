"""Search for cases. A case that lives here is read from memory, which is never behind the store."""

from collections.abc import Mapping

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.views import CaseQuery, CountsView
from mendflow.core.query.search_fields import CASES
from mendflow.services.base import paging
from mendflow.services.base.paging import Paging, SearchPage, SearchQuery, equals
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

_encode = msgspec.json.Encoder().encode

Living = Mapping[CaseId, LiveCase]


async def search(store: Store, living: Living, query: CaseQuery, now: Instant, sight: Sight = EVERYTHING) -> SearchPage:
    """The bodies of their documents; by default the newest first."""
    return await paging.find(store, _search_query(query, now, sight), lambda document: _current_body(living, document))


async def count(
    store: Store, living: Living, query: CaseQuery, by: str, now: Instant, sight: Sight = EVERYTHING
) -> CountsView:
    counts, place, looked_at = await paging.count(
        store, _search_query(query, now, sight), by, lambda document: _current_body(living, document)
    )
    return CountsView(counts=counts, next=place, looked_at=looked_at)


def _search_query(query: CaseQuery, now: Instant, sight: Sight = EVERYTHING) -> SearchQuery:
    also = [equals(name, value) for name, value in (("flow", query.flow), ("status", query.status)) if value]
    return paging.parse_query(
        CASES,
        query.where,
        also,
        Paging(query.limit, query.offset, query.after),
        now=now,
        order=query.order,
        only=[FieldCondition("void", None), *in_sight(sight)],  # what never began is no case to anybody
        usual="-started",
    )


def _current_body(living: Living, document: StoredDocument) -> bytes:
    live = living.get(CaseId(document.id))
    if live is None:
        return document.body
    seen: CaseDocument = msgspec.structs.replace(live.document, counts=live.tally.counts())
    return _encode(seen)
