"""Logical files, and the storage elements that they lie on. A file's name may be given with `lfn:` or without."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.data import LogicalFile, Replica, ReplicaLocation, StorageElement
from mendflow.core.model.parameters import Limit
from mendflow.operations.arguments import Body, LogicalName, Named, Spread, StrictBody
from mendflow.operations.names import ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, OPERATORS, VIEWERS
from mendflow.operations.subjects import INSTALLATION, LISTED, LOGICAL_FILE, NEW_LOGICAL_FILE

AfterName = Annotated[str, Meta(description="The last name of the page before.")]
OfSet = Annotated[str, Named("set"), Meta(description="Only files of this data set.")]
ReservedToo = Annotated[bool, Named("all"), Meta(description="Also names that are kept for a job that is writing.")]
Replacing = Annotated[bool, Meta(description="Change an existing one that differs.")]


class DataCalls(Calls, tag="data"):
    @operation("GET", "/data/files", VIEWERS, LISTED)
    async def data(
        self,
        *,
        prefix: str = "",
        data_set: OfSet = "",
        after: AfterName = "",
        limit: Limit = 100,
        every: ReservedToo = False,
    ) -> list[LogicalFile]:
        """Logical files, by name."""

    @operation("POST", "/data/files", OPERATORS, NEW_LOGICAL_FILE, repeatable=True)
    async def add_data(self, file: StrictBody[LogicalFile], *, project: ProjectName = "") -> LogicalFile:
        """Take in a file that lies somewhere. If the file is already known, the new replicas are added to it. The
        content of a name never changes. `made_by`, `added_at` and `writing` cannot be set by callers."""

    @operation("GET", "/data/files/{name:path}", VIEWERS, LOGICAL_FILE)
    async def datum(self, name: LogicalName) -> LogicalFile:
        """A logical file."""

    @operation("DELETE", "/data/files/{name:path}", ADMINISTRATORS, LOGICAL_FILE)
    async def remove_data(self, name: LogicalName) -> LogicalFile:
        """Forget a logical file. The replicas on storage elements are not deleted."""

    @operation("GET", "/places/{name:path}", VIEWERS, LOGICAL_FILE)
    async def places(self, name: LogicalName, *, site: str = "", storage: str = "") -> list[ReplicaLocation]:
        """Where a file would be read. The places where a pilot of that site would read the file, the nearest first."""

    @operation("POST", "/replicas/{name:path}", OPERATORS, LOGICAL_FILE, repeatable=True)
    async def add_replica(self, name: LogicalName, replica: Body[Replica]) -> LogicalFile:
        """Say that a file lies somewhere else too."""

    @operation("DELETE", "/replicas/{name:path}", ADMINISTRATORS, LOGICAL_FILE)
    async def remove_replica(self, name: LogicalName, replica: Annotated[Replica, Spread()]) -> LogicalFile:
        """Forget one place of a file. The last replica cannot be removed."""

    @operation("GET", "/data/storage", VIEWERS, INSTALLATION)
    async def elements(self) -> list[StorageElement]:
        """The storage elements."""

    @operation("POST", "/data/storage", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def put_element(self, element: StrictBody[StorageElement], *, replace: Replacing = False) -> StorageElement:
        """Add a storage element. With `replace`, change one that is there. Secrets are given as `env:NAME`, never as
        their values."""

    @operation("GET", "/data/storage/{name}", VIEWERS, INSTALLATION)
    async def element(self, name: str) -> StorageElement:
        """A storage element."""

    @operation("DELETE", "/data/storage/{name}", ADMINISTRATORS, INSTALLATION)
    async def remove_element(self, name: str) -> StorageElement:
        """Remove a storage element. The files on it are not deleted, but can no longer be found."""
