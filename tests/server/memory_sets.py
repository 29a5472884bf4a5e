"""Data sets of the domain in memory: it has none."""

from collections.abc import Sequence

from mendflow.core.model.data_sets import BatchView, DataSetView, DataSetWish, Watch, WatchView
from mendflow.core.model.problems import NotFound
from mendflow.core.model.values import FileRef


class MemorySets:
    async def data_sets(self, *, every: bool = False) -> list[DataSetView]:
        return []

    async def data_set(self, name: str) -> DataSetView:
        raise NotFound(f"there is no data set {name!r}")

    async def put_data_set(self, wish: DataSetWish, *, who: str) -> DataSetView:
        return DataSetView(name=wish.name, state="open", after=list(wish.after))

    async def set_files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        return []

    async def add_to_set(self, name: str, files: Sequence[str | FileRef], *, who: str) -> DataSetView:
        return DataSetView(name=name, state="open", files=len(files))

    async def set_batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        return []

    async def close_set(self, name: str, *, who: str) -> DataSetView:
        return await self.data_set(name)

    async def retry_batch(self, name: str, gathering: str, number: int, *, who: str) -> BatchView:
        raise NotFound(f"there is no data set {name!r}")

    async def watches(self) -> list[WatchView]:
        return []

    async def put_watch(self, watch: Watch, *, who: str) -> WatchView:
        return WatchView(watch=watch)

    async def remove_watch(self, name: str, *, who: str) -> WatchView:
        raise NotFound(f"there is no watch {name!r}")
