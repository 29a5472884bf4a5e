"""Which logical file lies where: a document for each place, so that no two names ever get the same place.

A file's document names the place first, and then the place's document is written, always with a new version. So a place
whose holder's document does not name it is free, whatever interrupted the holder; and of two that find it free at the
same time, one is refused. Nothing has to be cleaned up."""

import asyncio
import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from mendflow.core.data.name_mapping import replica_place
from mendflow.core.data.paths import path_inside
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.errors import Conflict, RequestError
from mendflow.core.model.ids import JobId
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.services.data.catalogue.elements import StorageElementRegistry
from mendflow.services.data.catalogue.files import LogicalFileStore
from mendflow.services.data.catalogue.writers import WritingJobs
from mendflow.stores.contract import Store, StoredDocument

PLACE_KIND: Final = "place"
PLACES_COMPLETE_KIND: Final = "places"
ALL: Final = "all"
"""The document that says that all files have place documents, also those that are older than these."""

BATCH: Final = 200


class StoragePlace(NamedTuple):
    element: str
    path: str  # below its URL

    @property
    def id(self) -> str:
        """A path may be longer than the id of a document allows; the name of an element has no colon."""
        return hashlib.sha256(f"{self.element}:{self.path}".encode()).hexdigest()


class PlaceDocument(msgspec.Struct, frozen=True, kw_only=True):
    element: str
    path: str
    name: str  # of the logical file


_decode = msgspec.json.Decoder(PlaceDocument).decode


def spots(element: StorageElement, name: str, replica: Replica, site: str = "") -> list[StoragePlace]:
    """The places of a replica. Rules may give one for each site, none of which may belong to another file."""
    found: dict[StoragePlace, None] = {}
    for each in dict.fromkeys((site, "", *element.sites)):
        try:
            place = replica_place(element, name, replica, each)
            found[StoragePlace(element.name, path_inside(element.url, place))] = None
        except RequestError:
            continue  # no pilot at that site reads or writes it
        if replica.path or element.rules is None:
            break
    return list(found)


class PlaceStore:
    def __init__(self, store: Store, ledger: Ledger, files: LogicalFileStore, elements: StorageElementRegistry) -> None:
        self._store = store
        self._ledger = ledger
        self._files = files
        self._elements = elements
        self._writers = WritingJobs(store)
        self._complete = False

    async def of(self, name: str, replicas: Iterable[Replica], site: str = "") -> list[StoragePlace]:
        found: list[StoragePlace] = []
        for replica in replicas:
            element = await self._elements.find(replica.element)
            found += spots(element, name, replica, site) if element is not None else []
        return found

    async def look(self, name: str, wanted: Iterable[StoragePlace], project: str, ref: FileRef | None = None) -> None:
        """Raise Conflict if another file has one of these places. With `ref`, another file of the project and of the
        same content that can be read there does not count: nobody writes there any more. Whoever only knows the digest
        of a file of another project gets neither its place nor an answer that depends on it."""
        await self._index_all()
        for spot in wanted:
            await self._is_free(name, spot, await self._store.get(PLACE_KIND, spot.id), project, ref)

    async def claim(self, name: str, wanted: Iterable[StoragePlace], project: str, ref: FileRef | None = None) -> None:
        """Claim places for a file whose document names them already. Raises Conflict as `look` does."""
        for spot in wanted:
            await self._claim(name, spot, project, ref)

    async def _claim(self, name: str, spot: StoragePlace, project: str, ref: FileRef | None) -> None:
        for _ in range(TRIES):
            found = await self._store.get(PLACE_KIND, spot.id)
            if not await self._is_free(name, spot, found, project, ref):
                return
            hold = PlaceDocument(element=spot.element, path=spot.path, name=name)
            if await self._ledger.put_now(PLACE_KIND, spot.id, hold, found.version if found is not None else 0):
                return
        raise Conflict(f"{spot.path} on {spot.element} is wanted by several at once, again and again; try once more")

    async def release(self, name: str, held: Iterable[StoragePlace]) -> None:
        """Release places of a file that its document no longer names."""
        for spot in held:
            found = await self._store.get(PLACE_KIND, spot.id)
            if found is not None and _decode(found.body).name == name and await self._holder(name, spot) is None:
                await self._ledger.put_now(PLACE_KIND, spot.id, None, found.version)

    async def _is_free(
        self, name: str, spot: StoragePlace, found: StoredDocument | None, project: str, ref: FileRef | None
    ) -> bool:
        """Whether the place can be claimed; false where it is shared. Raises Conflict if it belongs to another file."""
        if found is None or (other := _decode(found.body).name) == name:
            return True
        holder = await self._holder(other, spot)
        if holder is None:
            return True
        is_own = holder.project == project
        if is_own and ref is not None and holder.replicas and (holder.sha256, holder.bytes) == (ref.sha256, ref.bytes):
            return False
        raise Conflict(
            f"{name} would lie at {spot.path} on {spot.element}, where {other if is_own else 'another file'} lies"
            " already; take another name or another place, or mend the element's rules",
            name=name,
        )

    async def _holder(self, name: str, spot: StoragePlace) -> LogicalFile | None:
        """The file of that name, if its document says that it lies there or that a job which is not over writes it
        there."""
        file = await self._files.find(name)
        if file is None:
            return None
        if any(_may_lie_at(each, spot) for each in file.replicas):
            return file
        for job, each in file.writing.items():
            if _may_lie_at(each, spot) and await self._writers.lives(JobId(job)):
                return file
        return None

    async def _index_all(self) -> None:
        """Write the place documents of files that are older than these documents, once."""
        if self._complete:
            return
        if await self._store.get(PLACES_COMPLETE_KIND, ALL) is None:
            some: list[LogicalFile] = []
            async for file in self._files.all():
                some.append(file)
                if len(some) == BATCH:
                    await asyncio.gather(*map(self._index_file, some))
                    some.clear()
            await asyncio.gather(*map(self._index_file, some))
            await self._ledger.put_now(PLACES_COMPLETE_KIND, ALL, {}, 0)
        self._complete = True

    async def _index_file(self, file: LogicalFile) -> None:
        for spot in await self.of(file.name, (*file.replicas, *file.writing.values())):
            hold = PlaceDocument(element=spot.element, path=spot.path, name=file.name)
            await self._ledger.put_now(PLACE_KIND, spot.id, hold, 0)


def _may_lie_at(replica: Replica, spot: StoragePlace) -> bool:
    """The rules may have changed since: a file without a path of its own may lie anywhere on its element."""
    return replica.element == spot.element and replica.path in ("", spot.path)
