"""The operations of a domain on logical files and storage elements."""

from typing import Protocol

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


class DataOperations(Protocol):
    """A file's name may be given with `lfn:` or without."""

    async def data(
        self, *, prefix: str = "", data_set: str = "", after: str = "", limit: int = 100, every: bool = False
    ) -> list[LogicalFile]:
        """By name, those after a name. `every`: also names that are reserved for a job that is writing."""
        ...

    async def datum(self, name: str) -> LogicalFile: ...
    async def add_data(self, file: LogicalFile, *, who: str) -> LogicalFile:
        """Add a file that exists on a storage element; if it is known already, add its replicas. Refused if the name
        has other content."""
        ...

    async def remove_data(self, name: str, *, who: str) -> LogicalFile:
        """Forget a file; its content on storage elements is not deleted."""
        ...

    async def add_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile: ...
    async def remove_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile: ...
    async def places(self, name: str, *, site: str = "", storage: str = "") -> list[ReplicaLocation]:
        """The places where a pilot of that site would read a file, the nearest first."""
        ...

    async def elements(self) -> list[StorageElement]: ...
    async def element(self, name: str) -> StorageElement: ...
    async def put_element(self, element: StorageElement, *, who: str, replace: bool = False) -> StorageElement: ...
    async def remove_element(self, name: str, *, who: str) -> StorageElement: ...

    async def locate(self, request: LocateRequest) -> LocateAnswer: ...
    async def place(self, request: PlaceRequest, *, who: str = "") -> PlaceAnswer:
        """Refused if that pilot does not run the job under the token `who`, or if the job does not publish such an
        output."""
        ...
