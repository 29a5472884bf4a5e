"""The part of the domain that is about logical files, storage elements, data sets and watched folders.

A file's name may be given with `lfn:` or without."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace as replace_fields

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
from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight, person_text
from mendflow.core.model.values import FileRef
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.data.catalogue.catalogue import Catalogue
from mendflow.services.data.sets.service import DataSets


class DataOperations(ViewOperations):
    @property
    def _catalogue(self) -> Catalogue:
        return self._server.runtime.catalogue

    async def data(
        self,
        *,
        prefix: str = "",
        data_set: str = "",
        after: str = "",
        limit: int = 100,
        every: bool = False,
        sight: Sight = EVERYTHING,
    ) -> list[LogicalFile]:
        """By name, those after a name. `every`: also names that are reserved for a job that is writing."""
        return await self._catalogue.files.page(
            prefix=prefix, data_set=data_set, after=after, limit=limit, every=every, sight=sight
        )

    async def datum(self, name: str) -> LogicalFile:
        return await self._catalogue.files.get(name)

    async def add_data(self, file: LogicalFile, *, who: str, project: str = "") -> LogicalFile:
        """Add a file that exists on a storage element; if it is known already, add its replicas. Refused if the name
        has other content."""
        return await self._catalogue.add(replace_fields(file, project=project or DEFAULT_PROJECT), project=project)

    async def remove_data(self, name: str, *, who: str) -> LogicalFile:
        """Forget a file; its content on storage elements is not deleted."""
        removed = await self._catalogue.remove(name)
        self._server.runtime.notices.post(
            f"file {removed.name} was taken out of the catalogue by {person_text(who)}", project=removed.project
        )
        return removed

    async def add_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile:
        return await self._catalogue.add_replica(name, replica)

    async def remove_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile:
        return await self._catalogue.remove_replica(name, replica)

    async def places(self, name: str, *, site: str = "", storage: str = "") -> list[ReplicaLocation]:
        """The places where a pilot of that site would read a file, the nearest first."""
        return await self._catalogue.places(name, site=site, storage=storage)

    async def elements(self) -> list[StorageElement]:
        return await self._catalogue.elements.all()

    async def element(self, name: str) -> StorageElement:
        return await self._catalogue.elements.get(name)

    async def put_element(self, element: StorageElement, *, who: str, replace: bool = False) -> StorageElement:
        return await self._catalogue.elements.put(element, replace=replace)

    async def remove_element(self, name: str, *, who: str) -> StorageElement:
        removed = await self._catalogue.elements.remove(name)
        self._server.runtime.notices.post(f"storage element {name} was removed by {person_text(who)}")
        return removed

    async def locate(self, request: LocateRequest, *, projects: Collection[str] = ()) -> LocateAnswer:
        """Of files of these projects; without any, of all."""
        return await self._catalogue.locate(request, projects=projects)

    async def place(self, request: PlaceRequest, *, who: str = "") -> PlaceAnswer:
        """Refused if that pilot does not run the job under the token `who`, or if the job does not publish such an
        output."""
        return await self._catalogue.place(request, who=who)

    # Data sets and watched folders

    @property
    def _sets(self) -> DataSets:
        return self._server.runtime.data_sets

    async def data_sets(self, *, every: bool = False, sight: Sight = EVERYTHING) -> list[DataSetView]:
        """By name; `every`: also those that are over."""
        return await self._sets.all(every=every, sight=sight)

    async def data_set(self, name: str) -> DataSetView:
        return await self._sets.view(name)

    async def put_data_set(self, wish: DataSetSpec, *, who: str, project: str = "") -> DataSetView:
        """Create a set, or change what is done with its files from now on. `who` owns the cases that it starts."""
        await self._settled()
        return await self._sets.define(wish, who=who, project=project)

    async def set_files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        """In the order in which they came."""
        return await self._sets.files(name, limit=limit, offset=offset)

    async def add_to_set(
        self, name: str, files: Sequence[str | FileRef], *, who: str, project: str = ""
    ) -> DataSetView:
        """Report that files have arrived: logical names of the catalogue, or files stored on the server. The set is
        created if it does not exist. A file that is reported twice counts once."""
        return await self._sets.arrived(name, files, project=project)

    async def set_batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        """The newest first."""
        return await self._sets.batches(name, status=status, limit=limit)

    async def close_set(self, name: str, *, who: str) -> DataSetView:
        """Close the set: files that wait become a last batch."""
        return await self._sets.close(name, who=who)

    async def retry_batch(self, name: str, gathering: str, number: int, *, who: str) -> BatchView:
        """Start another case for a batch whose case did not complete; results of completed jobs are reused."""
        return await self._sets.retry(name, gathering, number, who=who)

    async def watches(self, *, sight: Sight = EVERYTHING) -> list[WatchView]:
        """A watch belongs to the project of the set that it fills."""
        found = await self._server.runtime.watches.all()
        if sight.projects is None:
            return found
        sets = {each.watch.data_set for each in found}
        of = {name: await self.project_lookup.find("data set", name) or DEFAULT_PROJECT for name in sets}
        return [each for each in found if sight.sees(of[each.watch.data_set])]

    async def put_watch(self, watch: FolderWatch, *, who: str) -> WatchView:
        return await self._server.runtime.watches.add(watch, who=who)

    async def remove_watch(self, name: str, *, who: str) -> WatchView:
        """Stop watching; files that were found stay in their set."""
        removed = await self._server.runtime.watches.remove(name)
        self._server.runtime.notices.post(f"watch {name} was removed by {person_text(who)}")
        await self._settled()
        return removed
