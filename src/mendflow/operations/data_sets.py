"""Data sets: files that arrive, the cases that are started for them, and watched storage elements."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.parameters import Limit, Offset
from mendflow.core.model.values import FileRef
from mendflow.operations.arguments import Body
from mendflow.operations.names import ClosedToo, ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, AUTHORS, OPERATORS, VIEWERS
from mendflow.operations.subjects import DATA_SET, FILLED_DATA_SET, INSTALLATION, LISTED, NEW_DATA_SET

BatchStatusWord = Annotated[str, Meta(description="Only these: waiting, running, completed, failed or cancelled.")]


class DataSetCalls(Calls, tag="data sets"):
    @operation("GET", "/data/sets", VIEWERS, LISTED)
    async def data_sets(self, *, every: ClosedToo = False) -> list[DataSetView]:
        """Data sets, by name."""

    @operation("GET", "/data/sets/{name}", VIEWERS, DATA_SET)
    async def data_set(self, name: str) -> DataSetView:
        """A data set: its files, what waits, and what was started."""

    @operation("PUT", "/data/sets/{wish.name}", AUTHORS, NEW_DATA_SET, repeatable=True)
    async def put_data_set(self, wish: Body[DataSetSpec], *, project: ProjectName = "") -> DataSetView:
        """Make a data set, or say anew what follows from its files. Cases that the data set starts belong to the
        caller. A gathering that exists already, by its name, continues where it was; a new one is given the files that
        are there."""

    @operation("GET", "/data/sets/{name}/files", VIEWERS, DATA_SET)
    async def set_files(self, name: str, *, limit: Limit = 1000, offset: Offset = 0) -> list[FileRef]:
        """The files of a data set, in the order in which they came."""

    @operation("POST", "/data/sets/{name}/files", OPERATORS, FILLED_DATA_SET, repeatable=True)
    async def add_to_set(self, name: str, files: Sequence[str | FileRef], *, project: ProjectName = "") -> DataSetView:
        """Say that files have arrived. `files` are names of logical files, or files that the server has stored. The set
        is created if it does not exist. A file that is added twice counts once. Refused if the set is closed."""

    @operation("GET", "/data/sets/{name}/batches", VIEWERS, DATA_SET)
    async def set_batches(self, name: str, *, status: BatchStatusWord = "", limit: Limit = 1000) -> list[BatchView]:
        """The batches of a data set and their cases, the newest first."""

    @operation("POST", "/data/sets/{name}/close", OPERATORS, DATA_SET, repeatable=True)
    async def close_set(self, name: str) -> DataSetView:
        """Close a data set: nothing more comes. The files that wait are handed on in one last batch."""

    @operation("POST", "/data/sets/{name}/batches/{gathering}/{number}/retry", OPERATORS, DATA_SET)
    async def retry_batch(self, name: str, gathering: str, number: int) -> BatchView:
        """Start another case for a batch whose case did not complete. The results of the jobs that completed are
        reused."""

    @operation("GET", "/data/watches", VIEWERS, LISTED)
    async def watches(self) -> list[WatchView]:
        """Watched storage elements."""

    @operation("PUT", "/data/watches/{watch.name}", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def put_watch(self, watch: Body[FolderWatch]) -> WatchView:
        """Watch a folder of a storage element. The server scans that folder from now on."""

    @operation("DELETE", "/data/watches/{name}", ADMINISTRATORS, INSTALLATION)
    async def remove_watch(self, name: str) -> WatchView:
        """Watch no more. Files that it found stay in their data set."""
