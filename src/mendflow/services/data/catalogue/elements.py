"""The storage elements: a few documents that all servers share, all of them in memory."""

from collections.abc import Iterable
from typing import Final

import msgspec

from mendflow.core.data.elements import elements_overlap, normalize_element
from mendflow.core.model.data import StorageElement
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import readable_by_id
from mendflow.stores.contract import Store

STORAGE_KIND: Final = "storage"
ELEMENTS_MAX: Final = 10_000

_decode = msgspec.json.Decoder(StorageElement).decode


class StorageElementRegistry:
    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self._known: dict[str, StorageElement] = {}

    async def start(self) -> None:
        """Read all storage elements; other servers may have changed some."""
        self._known = await readable_by_id(self._store.scan(STORAGE_KIND), _decode)

    async def all(self) -> list[StorageElement]:
        await self.start()
        return list(self._known.values())

    def known(self) -> list[StorageElement]:
        """Those in memory, by name; one that another server added a moment ago may be missing."""
        return [self._known[name] for name in sorted(self._known)]

    async def find(self, name: str) -> StorageElement | None:
        """By name; the store is asked for one that is not in memory."""
        if name not in self._known and (found := await self._store.get(STORAGE_KIND, name)) is not None:
            self._known[name] = _decode(found.body)
        return self._known.get(name)

    async def get(self, name: str) -> StorageElement:
        """Read one from the store."""
        found = await self._store.get(STORAGE_KIND, name)
        if found is None:
            raise NotFound(
                f"there is no storage element {name!r:.100}; `mendflow data storage list` shows which there are"
            )
        return _decode(found.body)

    async def put(self, given: StorageElement, *, replace: bool) -> StorageElement:
        """Add an element, or change one. Refused if it is invalid, or overlaps with another: files that are written
        through either could overwrite each other, and a place is identified by its element."""
        element = normalize_element(given)
        others = [each for each in await self.all() if each.name != element.name]
        if (known := self._known.get(element.name)) is None or known.url != element.url or known.read_only:
            _demand_no_overlap(element, others)
        if len(self._known) >= ELEMENTS_MAX:
            raise InvalidRequest(f"there are {ELEMENTS_MAX} storage elements already; remove some")
        for _ in range(TRIES):
            found = await self._store.get(STORAGE_KIND, element.name)
            if found is not None and _decode(found.body) != element and not replace:
                raise Conflict(f"storage element {element.name} exists with other settings; --replace changes them")
            if await self._ledger.put_now(STORAGE_KIND, element.name, element, found.version if found else 0):
                self._known[element.name] = element
                return element
        raise _conflict(element.name)

    async def remove(self, name: str) -> StorageElement:
        """Files keep their replicas there, but these can no longer be found."""
        for _ in range(TRIES):
            element, found = await self.get(name), await self._store.get(STORAGE_KIND, name)
            if found is None or await self._ledger.put_now(STORAGE_KIND, name, None, found.version) is not None:
                self._known.pop(name, None)
                return element
        raise _conflict(name)


def _demand_no_overlap(element: StorageElement, others: Iterable[StorageElement]) -> None:
    for other in others:
        if elements_overlap(element, other):
            raise Conflict(
                f"storage element {element.name} at {element.url} overlaps with {other.name} at {other.url}, and both"
                " are writable: files of different names could get the same place. Give it its own"
                " folder, or make one of them read-only"
            )


def _conflict(name: str) -> Conflict:
    return Conflict(f"storage element {name} is changed by several at once, again and again; try once more")
