"""The part of the local domain that is about data sets and watches."""

from collections.abc import Sequence

from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.values import FileRef
from mendflow.services.api.local_views import LocalViews
from mendflow.services.data.sets.service import DataSets


class LocalSets(LocalViews):
    @property
    def _sets(self) -> DataSets:
        return self._server.runtime.data_sets

    async def data_sets(self, *, every: bool = False) -> list[DataSetView]:
        return await self._sets.all(every=every)

    async def data_set(self, name: str) -> DataSetView:
        return await self._sets.view(name)

    async def put_data_set(self, wish: DataSetSpec, *, who: str) -> DataSetView:
        await self._settled()
        return await self._sets.define(wish, who=who)

    async def set_files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        return await self._sets.files(name, limit=limit, offset=offset)

    async def add_to_set(self, name: str, files: Sequence[str | FileRef], *, who: str) -> DataSetView:
        return await self._sets.arrived(name, files)

    async def set_batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        return await self._sets.batches(name, status=status, limit=limit)

    async def close_set(self, name: str, *, who: str) -> DataSetView:
        return await self._sets.close(name, who=who)

    async def retry_batch(self, name: str, gathering: str, number: int, *, who: str) -> BatchView:
        return await self._sets.retry(name, gathering, number, who=who)

    async def watches(self) -> list[WatchView]:
        return await self._server.runtime.watches.all()

    async def put_watch(self, watch: FolderWatch, *, who: str) -> WatchView:
        return await self._server.runtime.watches.add(watch, who=who)

    async def remove_watch(self, name: str, *, who: str) -> WatchView:
        removed = await self._server.runtime.watches.remove(name)
        self._server.runtime.notices.post(f"watch {name} was removed by {who}")
        await self._settled()
        return removed
