"""Search for cases. A case that lives here is read from memory, which is never behind the store."""

from collections.abc import Collection, Mapping

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseQuery, CountsView
from mendflow.core.query.search_fields import CASES, FOR_PERSON
from mendflow.services.base import paging
from mendflow.services.base.cluster import LIVE_STATUSES
from mendflow.services.base.paging import Paging, SearchPage, SearchQuery, equals
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

_encode = msgspec.json.Encoder().encode
_decode_data = msgspec.json.Decoder(dict[str, Value]).decode

Living = Mapping[CaseId, LiveCase]


def asks_for_people(query: CaseQuery, by: str = "") -> bool:
    """Whether it must be known which cases wait for a person."""
    return FOR_PERSON in query.where + query.also or by == FOR_PERSON


async def search(
    store: Store,
    living: Living,
    query: CaseQuery,
    now: Instant,
    sight: Sight = EVERYTHING,
    *,
    for_person: Collection[str] = (),
) -> SearchPage:
    """The bodies of their documents; by default the newest first. `for_person` are the cases that wait for a person."""
    wanted = _search_query(query, now, sight)
    return await paging.find(store, wanted, lambda document: _current_body(living, document, for_person))


async def count(
    store: Store,
    living: Living,
    query: CaseQuery,
    by: str,
    now: Instant,
    sight: Sight = EVERYTHING,
    *,
    for_person: Collection[str] = (),
) -> CountsView:
    counts, place, looked_at = await paging.count(
        store, _search_query(query, now, sight), by, lambda document: _current_body(living, document, for_person)
    )
    return CountsView(counts=counts, next=place, looked_at=looked_at)


def _search_query(query: CaseQuery, now: Instant, sight: Sight = EVERYTHING) -> SearchQuery:
    also = [equals(name, value) for name, value in (("flow", query.flow), ("status", query.status)) if value]
    also += [query.also] if query.also else []
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


def _current_body(living: Living, document: StoredDocument, for_person: Collection[str]) -> bytes:
    live, body = living.get(CaseId(document.id)), document.body
    if live is not None:
        seen: CaseDocument = msgspec.structs.replace(live.document, counts=live.tally.counts())
        body = _encode(seen)
    if document.id not in for_person:
        return body
    data = _decode_data(body)
    return _encode({**data, FOR_PERSON: data.get("status", "running") in LIVE_STATUSES})
