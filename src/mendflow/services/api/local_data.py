"""The part of the local domain that is about logical files and storage elements."""

from mendflow.core.model.data import (
    LocateAnswer,
    LocateRequest,
    LogicalFile,
    PlaceAnswer,
    PlaceRequest,
    Replica,
    ReplicaLocation,
    StorageElement,
)
from mendflow.services.api.local_views import LocalViews
from mendflow.services.data.catalogue.catalogue import Catalogue


class LocalData(LocalViews):
    @property
    def _catalogue(self) -> Catalogue:
        return self._server.runtime.catalogue

    async def data(
        self, *, prefix: str = "", data_set: str = "", after: str = "", limit: int = 100, every: bool = False
    ) -> list[LogicalFile]:
        return await self._catalogue.files.page(prefix=prefix, data_set=data_set, after=after, limit=limit, every=every)

    async def datum(self, name: str) -> LogicalFile:
        return await self._catalogue.files.get(name)

    async def add_data(self, file: LogicalFile, *, who: str) -> LogicalFile:
        return await self._catalogue.add(file)

    async def remove_data(self, name: str, *, who: str) -> LogicalFile:
        removed = await self._catalogue.remove(name)
        self._server.runtime.notices.post(f"file {removed.name} was taken out of the catalogue by {who}")
        return removed

    async def add_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile:
        return await self._catalogue.add_replica(name, replica)

    async def remove_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile:
        return await self._catalogue.remove_replica(name, replica)

    async def places(self, name: str, *, site: str = "", storage: str = "") -> list[ReplicaLocation]:
        return await self._catalogue.places(name, site=site, storage=storage)

    async def elements(self) -> list[StorageElement]:
        return await self._catalogue.elements.all()

    async def element(self, name: str) -> StorageElement:
        return await self._catalogue.elements.get(name)

    async def put_element(self, element: StorageElement, *, who: str, replace: bool = False) -> StorageElement:
        return await self._catalogue.elements.put(element, replace=replace)

    async def remove_element(self, name: str, *, who: str) -> StorageElement:
        removed = await self._catalogue.elements.remove(name)
        self._server.runtime.notices.post(f"storage element {name} was removed by {who}")
        return removed

    async def locate(self, request: LocateRequest) -> LocateAnswer:
        return await self._catalogue.locate(request)

    async def place(self, request: PlaceRequest, *, who: str = "") -> PlaceAnswer:
        return await self._catalogue.place(request, who=who)
