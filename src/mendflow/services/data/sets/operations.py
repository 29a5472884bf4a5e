"""The operations of a domain on data sets and watched storage elements."""

from collections.abc import Sequence
from typing import Protocol

from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.values import FileRef


class DataSetOperations(Protocol):
    async def data_sets(self, *, every: bool = False) -> list[DataSetView]:
        """By name; `every`: also those that are over."""
        ...

    async def data_set(self, name: str) -> DataSetView: ...
    async def put_data_set(self, wish: DataSetSpec, *, who: str) -> DataSetView:
        """Create a set, or change what is done with its files from now on. `who` owns the cases that it starts."""
        ...

    async def set_files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        """In the order in which they came."""
        ...

    async def add_to_set(self, name: str, files: Sequence[str | FileRef], *, who: str) -> DataSetView:
        """Report that files have arrived: logical names of the catalogue, or files stored on the server. The set is
        created if it does not exist. A file that is reported twice counts once."""
        ...

    async def set_batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        """The newest first."""
        ...

    async def close_set(self, name: str, *, who: str) -> DataSetView:
        """Close the set: files that wait become a last batch."""
        ...

    async def retry_batch(self, name: str, gathering: str, number: int, *, who: str) -> BatchView:
        """Start another case for a batch whose case did not complete; results of completed jobs are reused."""
        ...

    async def watches(self) -> list[WatchView]: ...
    async def put_watch(self, watch: FolderWatch, *, who: str) -> WatchView: ...
    async def remove_watch(self, name: str, *, who: str) -> WatchView:
        """Stop watching; files that were found stay in their set."""
        ...
