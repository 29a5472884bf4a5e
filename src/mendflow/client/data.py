"""The client's calls about logical files and storage elements."""

from urllib.parse import quote

import msgspec

from mendflow.client.transport import Transport
from mendflow.core.data.paths import logical_name
from mendflow.core.model.data import LogicalFile, Replica, ReplicaLocation, StorageElement


class DataCalls:
    """A file's name may be given with `lfn:` or without."""

    _transport: Transport

    async def data(
        self, *, prefix: str = "", data_set: str = "", after: str = "", limit: int = 100, every: bool = False
    ) -> list[LogicalFile]:
        query: dict[str, str | int] = {"prefix": prefix, "set": data_set, "after": after, "limit": limit}
        query |= {"all": "true" if every else "false"}
        return await self._transport.ask("GET", "/data/files", list[LogicalFile], query=query)

    async def datum(self, name: str) -> LogicalFile:
        return await self._transport.ask("GET", f"/data/files{_path(name)}", LogicalFile)

    async def add_data(self, file: LogicalFile) -> LogicalFile:
        """Adding the same file twice is one, so this is repeated when the line breaks."""
        return await self._transport.ask(
            "POST", "/data/files", LogicalFile, body=msgspec.to_builtins(file), repeatable=True
        )

    async def remove_data(self, name: str) -> LogicalFile:
        return await self._transport.ask("DELETE", f"/data/files{_path(name)}", LogicalFile)

    async def places(self, name: str, *, site: str = "", storage: str = "") -> list[ReplicaLocation]:
        query: dict[str, str | int] = {"site": site, "storage": storage}
        return await self._transport.ask("GET", f"/places{_path(name)}", list[ReplicaLocation], query=query)

    async def add_replica(self, name: str, replica: Replica) -> LogicalFile:
        body = msgspec.to_builtins(replica)
        return await self._transport.ask("POST", f"/replicas{_path(name)}", LogicalFile, body=body, repeatable=True)

    async def remove_replica(self, name: str, replica: Replica) -> LogicalFile:
        query: dict[str, str | int] = {"element": replica.element, "path": replica.path}
        return await self._transport.ask("DELETE", f"/replicas{_path(name)}", LogicalFile, query=query)

    async def elements(self) -> list[StorageElement]:
        return await self._transport.ask("GET", "/data/storage", list[StorageElement])

    async def element(self, name: str) -> StorageElement:
        return await self._transport.ask("GET", f"/data/storage/{quote(name, safe='')}", StorageElement)

    async def put_element(self, element: StorageElement, *, replace: bool = False) -> StorageElement:
        """Add an element; with `replace`, change one that is there."""
        query: dict[str, str | int] = {"replace": "true" if replace else "false"}
        body = msgspec.to_builtins(element)
        return await self._transport.ask(
            "POST", "/data/storage", StorageElement, body=body, query=query, repeatable=True
        )

    async def remove_element(self, name: str) -> StorageElement:
        return await self._transport.ask("DELETE", f"/data/storage/{quote(name, safe='')}", StorageElement)


def _path(name: str) -> str:
    """A name that is none is refused here: on its way it might become another."""
    return quote(logical_name(name), safe="/")
