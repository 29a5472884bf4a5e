"""A search over the documents of a store, page by page.

The store evaluates the part of the condition that it can, in an order that it has an index for; the rest of the
condition is evaluated for each document found. A cursor is the position of the last document that was evaluated, so it
is good for any number of pages, whatever is written meanwhile. One answer evaluates a bounded number of documents: then
it says how far it came. If it has not yet skipped all that it was asked to, the cursor also says how many are left to
skip."""

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.values import Value
from mendflow.core.query.literals import refuse
from mendflow.core.query.search import Search
from mendflow.core.query.search_fields import SearchField, SearchFields, value_of
from mendflow.services.base.loop_yielder import LoopYielder
from mendflow.services.base.search_budget import SearchBudget
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

EXAMINED_MAX: Final = 100_000
"""How many documents one answer evaluates; fewer if the condition takes much work."""
PAGE: Final = 1_000
FIRST_PAGE: Final = 10
PAGE_BYTES: Final = 4 << 20
"""So much is read at once, estimated from the size of the previous page: others wait for their own meanwhile."""
FOUND_BYTES_MAX: Final = 32 << 20
"""So many bytes of documents one answer holds at most, and one document more; then it says how far it came."""
COUNTED_NAMES_MAX: Final = 10_000


class SortOrder(NamedTuple):
    """Order by a field of the documents. `name` is what people type, with - in front for descending order."""

    name: str
    field: str
    descending: bool


class SearchQuery(NamedTuple):
    """`also` are conditions that must hold besides the one in the query; so must `only`, of which the store knows all
    that there is to know."""

    search: Search
    also: tuple[Search, ...]
    order: SortOrder
    limit: int = 100
    offset: int = 0
    after: str = ""
    only: tuple[FieldCondition, ...] = ()

    def where(self) -> list[FieldCondition]:
        return [*self.only] + [
            FieldCondition(need.field, need.value, need.op)
            for search in (self.search, *self.also)
            for need in search.needs
        ]

    def holds(self, data: Mapping[str, Value]) -> bool:
        return all(each.holds(data) for each in self.also) and self.search.holds(data)

    @property
    def all(self) -> bool:
        """Whether there is no condition at all."""
        return not self.search.text and not self.also


class SearchCursor(msgspec.Struct, frozen=True, array_like=True):
    """The name of the order, the value at the position, the id there, and how many results are to be skipped from
    there on."""

    order: str
    value: str | int | float | bool | None
    id: str
    skip: Annotated[int, Meta(ge=0)] = 0


Found = TypeVar("Found")


class CurrentDocuments(Protocol[Found]):
    """What documents are by now: for what lives here, memory is ahead of the store."""

    def read(self, document: StoredDocument, /) -> Found: ...

    def data_of(self, found: Found, /) -> Mapping[str, Value]:
        """What conditions are about; asked for only if there is one."""
        ...


class SearchPage(NamedTuple, Generic[Found]):
    found: list[Found]
    next: str
    looked_at: int


def order_of(words: SearchFields, given: str, usual: str) -> SortOrder:
    """The order that was asked for; refused if no store index has it."""
    name = given or usual
    found = words.names.get(name.removeprefix("-"))
    if found is None or not found.field:
        refuse(f"there is no order by {name.removeprefix('-')!r}; known are {', '.join(words.orders())}")
    return SortOrder(name, found.field, name.startswith("-"))


def equals(name: str, value: str) -> str:
    """The condition that a field has this value."""
    return f"{name} == {msgspec.json.encode(value).decode()}"


class PageQuery(Protocol):
    """Which results are asked for, in which order, and `limit` of them after skipping `offset`, from a cursor on."""

    @property
    def where(self) -> str: ...
    @property
    def also(self) -> str: ...
    @property
    def order(self) -> str: ...
    @property
    def limit(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def after(self) -> str: ...


def parse_query(
    words: SearchFields,
    query: PageQuery,
    *,
    now: Instant,
    usual: str,
    fields: Mapping[str, str],
    more: Sequence[str] = (),
    only: Sequence[FieldCondition] = (),
) -> SearchQuery:
    """`usual` is the order unless the query says one; `fields` have to have these values, as far as they are not empty;
    `more` are further conditions."""
    also = [equals(name, value) for name, value in fields.items() if value]
    also += [*more, query.also] if query.also else more
    both = Search(words, query.where, now), tuple(Search(words, each, now) for each in also)
    order = order_of(words, query.order, usual)
    return SearchQuery(*both, order, query.limit, query.offset, query.after, tuple(only))


async def find(store: Store, wanted: SearchQuery, current: CurrentDocuments[Found]) -> SearchPage[Found]:
    """The next page of results. What a page before could not skip any more is skipped before the offset."""
    if wanted.after:
        wanted = wanted._replace(offset=wanted.offset + _read_cursor(wanted.order, wanted.after).skip)
    found, left, budget, yielder = list[Found](), wanted.offset, SearchBudget(EXAMINED_MAX), LoopYielder()
    held_bytes = 0
    async for document in _documents(store, wanted):
        await yielder.pause()
        one = current.read(document)
        budget.look()
        if wanted.all or budget.holds(wanted, current.data_of(one)):
            left -= 1
            if left < 0:
                found.append(one)
                held_bytes += len(document.body)
        if len(found) == wanted.limit or budget.is_spent or held_bytes > FOUND_BYTES_MAX:
            return SearchPage(found, _make_cursor(wanted.order, document, max(0, left)), budget.looked_at)
    return SearchPage(found, "", budget.looked_at)


async def count(
    store: Store, wanted: SearchQuery, by: str, current: CurrentDocuments[Any]
) -> tuple[dict[str, int], str, int]:
    """Counts by the values of a field, or of all under the empty name; the cursor to continue from, if there are more;
    and how many documents were evaluated."""
    name = count_field(wanted.search.words, by) if by else None
    counts: dict[str, int] = {} if name else {"": 0}
    budget, yielder = SearchBudget(EXAMINED_MAX), LoopYielder()
    async for document in _documents(store, wanted):
        await yielder.pause()
        data = current.data_of(current.read(document))
        budget.look()
        if budget.holds(wanted, data):
            word = word_of(value_of(name, data)) if name else ""
            counts[word] = counts.get(word, 0) + 1
        if budget.is_spent or len(counts) == COUNTED_NAMES_MAX:
            return counts, _make_cursor(wanted.order, document), budget.looked_at
    return counts, "", budget.looked_at


def count_field(words: SearchFields, by: str) -> SearchField:
    found = words.names.get(by)
    if found is None or found.kind == "data":
        refuse(f"nothing can be counted by {by!r}; known are {', '.join(words.names)}")
    return found


def word_of(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


async def _documents(store: Store, wanted: SearchQuery) -> AsyncIterator[StoredDocument]:
    """The documents of all kinds that the search is over, in one order."""
    streams = [_documents_of_kind(store, wanted, kind) for kind in wanted.search.words.kinds]
    firsts = await asyncio.gather(*(anext(stream, None) for stream in streams))
    heads = [(document, stream) for document, stream in zip(firsts, streams, strict=True) if document is not None]
    nearest = max if wanted.order.descending else min
    while len(heads) > 1:
        head = nearest(heads, key=lambda each: _position(wanted.order, each[0]))
        yield head[0]
        after = await anext(head[1], None)
        heads[heads.index(head) : heads.index(head) + 1] = [(after, head[1])] if after is not None else []
    for document, stream in heads:
        yield document
        async for document in stream:
            yield document


def _position(order: SortOrder, document: StoredDocument) -> tuple[int, Value, str]:
    """Where stores sort a document: null before numbers before texts, and equal ones by their ids."""
    value = _ordered_value(order, document)
    if value is None:
        return 0, 0, document.id
    return (2 if isinstance(value, str) else 1), value, document.id


def _ordered_value(order: SortOrder, document: StoredDocument) -> Value:
    data = msgspec.json.decode(document.body)
    for part in order.field.split("."):
        data = data.get(part) if isinstance(data, dict) else None
    return data


async def _documents_of_kind(store: Store, wanted: SearchQuery, kind: str) -> AsyncGenerator[StoredDocument, None]:
    order, where = wanted.order, wanted.where()
    last = _cursor_document(wanted.order, wanted.after) if wanted.after else None
    most = PAGE if wanted.search.text or wanted.offset else min(PAGE, wanted.limit)
    size = min(most, FIRST_PAGE)
    while True:
        page = await store.search(
            kind,
            where,
            order_by=order.field,
            descending=order.descending,
            limit=size,
            after=last,
        )
        for document in page:
            yield document
        if len(page) < size:
            return
        last = page[-1]
        size = max(1, min(most, PAGE_BYTES * len(page) // (1 + sum(len(each.body) for each in page))))


def _make_cursor(order: SortOrder, document: StoredDocument, skip: int = 0) -> str:
    place = [order.name, _ordered_value(order, document), document.id, *([skip] if skip else [])]
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _read_cursor(order: SortOrder, cursor: str) -> SearchCursor:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        place = msgspec.json.decode(text, type=SearchCursor)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        refuse(f"{cursor[:60]!r} is not a place to continue from; give the `next` of the previous page, unchanged")
    if place.order != order.name:
        refuse(
            f"the place to continue from belongs to the order {place.order!r}, not {order.name!r}; "
            "give the same order again"
        )
    return place


def _cursor_document(order: SortOrder, cursor: str) -> StoredDocument:
    """A document at the position of the cursor; only its position is ever used."""
    place = _read_cursor(order, cursor)
    data: Value = place.value
    for part in reversed(order.field.split(".")):
        data = {part: data}
    return StoredDocument("", place.id, 1, msgspec.json.encode(data))
