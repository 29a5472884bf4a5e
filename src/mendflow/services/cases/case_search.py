"""Search for cases. A case that lives here is read from memory, which is never behind the store."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseQuery, CountsView
from mendflow.core.query.case_text import HELD_FAILURES
from mendflow.core.query.search_fields import CASES, FOR_PERSON
from mendflow.services.base import paging
from mendflow.services.base.cluster import LIVE_STATUSES
from mendflow.services.base.paging import SearchPage, SearchQuery
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

_decode = msgspec.json.Decoder(CaseDocument).decode
_decode_data: Final = msgspec.json.Decoder(dict[str, Value]).decode


class FoundCase(NamedTuple):
    """A case as it is stored, and as it is by now if it lives here. Large cases are not made into text again."""

    id: str
    body: bytes
    live: CaseDocument | None = None

    @property
    def document(self) -> CaseDocument:
        return self.live if self.live is not None else _decode(self.body)


def asks_for_people(query: CaseQuery, by: str = "") -> bool:
    """Whether it must be known which cases wait for a person."""
    return FOR_PERSON in query.where + query.also or by == FOR_PERSON


def asks_for_words(query: CaseQuery, by: str = "") -> bool:
    """Whether it must be known by what failures cases wait."""
    return "text" in query.where + query.also or by == "text"


class CaseSearch(msgspec.Struct, frozen=True):
    """`living` are the cases that live here, `sight` what may be found, `for_person` the cases that wait for a person,
    and `held_failures` what failed in cases and waits."""

    store: Store
    living: Mapping[CaseId, LiveCase]
    query: CaseQuery
    now: Instant
    sight: Sight = EVERYTHING
    for_person: Collection[str] = ()
    held_failures: Mapping[str, Collection[str]] = {}

    async def find(self) -> SearchPage[FoundCase]:
        """By default the newest first."""
        return await paging.find(self.store, self._wanted(), self)

    async def count(self, by: str) -> CountsView:
        counts, place, looked_at = await paging.count(self.store, self._wanted(), by, self)
        return CountsView(counts=counts, next=place, looked_at=looked_at)

    def _wanted(self) -> SearchQuery:
        query = self.query
        return paging.parse_query(
            CASES,
            query,
            now=self.now,
            fields={"flow": query.flow, "status": query.status},
            only=[FieldCondition("void", None), *in_sight(self.sight)],  # what never began is no case to anybody
            usual="-started",
        )

    def read(self, document: StoredDocument) -> FoundCase:
        live = self.living.get(CaseId(document.id))
        if live is None:
            return FoundCase(document.id, document.body)
        now: CaseDocument = msgspec.structs.replace(live.document, counts=live.tally.counts())
        return FoundCase(document.id, document.body, now)

    def data_of(self, found: FoundCase) -> Mapping[str, Value]:
        data = _decode_data(found.body) if found.live is None else msgspec.to_builtins(found.live, str_keys=True)
        if data.get("status", "running") in LIVE_STATUSES:
            data[FOR_PERSON] = found.id in self.for_person
            if found.id in self.held_failures:
                data[HELD_FAILURES] = list(self.held_failures[found.id])
        return data
