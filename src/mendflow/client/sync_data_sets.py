"""What is asked about data sets and watches, for programs that wait."""

from collections.abc import Sequence

from mendflow.client.sync_base import SyncBase
from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.values import FileRef


class SyncDataSets(SyncBase):
    def data_sets(self, *, every: bool = False) -> list[DataSetView]:
        return self._run(self._client.data_sets(every=every))

    def data_set(self, name: str) -> DataSetView:
        return self._run(self._client.data_set(name))

    def put_data_set(self, wish: DataSetSpec) -> DataSetView:
        return self._run(self._client.put_data_set(wish))

    def set_files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        return self._run(self._client.set_files(name, limit=limit, offset=offset))

    def add_to_set(self, name: str, files: Sequence[str | FileRef]) -> DataSetView:
        return self._run(self._client.add_to_set(name, files))

    def set_batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        return self._run(self._client.set_batches(name, status=status, limit=limit))

    def close_set(self, name: str) -> DataSetView:
        return self._run(self._client.close_set(name))

    def retry_batch(self, name: str, gathering: str, number: int) -> BatchView:
        return self._run(self._client.retry_batch(name, gathering, number))

    def watches(self) -> list[WatchView]:
        return self._run(self._client.watches())

    def put_watch(self, watch: FolderWatch) -> WatchView:
        return self._run(self._client.put_watch(watch))

    def remove_watch(self, name: str) -> WatchView:
        return self._run(self._client.remove_watch(name))
