"""What a person or a program can ask of a domain about data sets and watched storage elements."""

from collections.abc import Sequence
from typing import Protocol

from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.values import FileRef


class DataSetOperations(Protocol):
    async def data_sets(self, *, every: bool = False) -> list[DataSetView]:
        """By name; `every`: those that are over too."""
        ...

    async def data_set(self, name: str) -> DataSetView: ...
    async def put_data_set(self, wish: DataSetSpec, *, who: str) -> DataSetView:
        """Make a set, or change what follows from its files from now on. `who` owns the cases that it starts."""
        ...

    async def set_files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        """In the order in which they came."""
        ...

    async def add_to_set(self, name: str, files: Sequence[str | FileRef], *, who: str) -> DataSetView:
        """Say that files have arrived: logical names of the catalogue, or files stored on the server. The set is
        made if there is none. Told twice, a file counts once."""
        ...

    async def set_batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        """The newest first."""
        ...

    async def close_set(self, name: str, *, who: str) -> DataSetView:
        """Nothing more comes: what waits is handed on as it is."""
        ...

    async def retry_batch(self, name: str, gathering: str, number: int, *, who: str) -> BatchView:
        """Another case for a batch whose case did not complete; completed jobs are taken over."""
        ...

    async def watches(self) -> list[WatchView]: ...
    async def put_watch(self, watch: FolderWatch, *, who: str) -> WatchView: ...
    async def remove_watch(self, name: str, *, who: str) -> WatchView:
        """Look there no more; what was found stays in its set."""
        ...
