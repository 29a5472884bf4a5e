"""The client's calls about data sets and watches."""

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from mendflow.client.transport import Transport
from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.values import FileRef


class DataSetCalls:
    """All of these can be repeated: told twice, nothing happens twice."""

    _transport: Transport

    async def data_sets(self, *, every: bool = False) -> list[DataSetView]:
        return await self._transport.ask("GET", "/data/sets", list[DataSetView], query={"all": "true"} if every else {})

    async def data_set(self, name: str) -> DataSetView:
        return await self._transport.ask("GET", _path(name), DataSetView)

    async def put_data_set(self, wish: DataSetSpec) -> DataSetView:
        """Make a set, or say anew what follows from its files."""
        return await self._transport.ask(
            "PUT", _path(wish.name), DataSetView, body=msgspec.to_builtins(wish), repeatable=True
        )

    async def set_files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        query: dict[str, str | int] = {"limit": limit, "offset": offset}
        return await self._transport.ask("GET", f"{_path(name)}/files", list[FileRef], query=query)

    async def add_to_set(self, name: str, files: Sequence[str | FileRef]) -> DataSetView:
        """Files have arrived: logical names, or files that were uploaded."""
        names = [each for each in files if isinstance(each, str)]
        kept = [msgspec.to_builtins(each) for each in files if isinstance(each, FileRef)]
        body = {"names": names, "kept": kept}
        return await self._transport.ask("POST", f"{_path(name)}/files", DataSetView, body=body, repeatable=True)

    async def set_batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        query: dict[str, str | int] = {"status": status, "limit": limit}
        return await self._transport.ask("GET", f"{_path(name)}/batches", list[BatchView], query=query)

    async def close_set(self, name: str) -> DataSetView:
        """Nothing more comes."""
        return await self._transport.ask("POST", f"{_path(name)}/close", DataSetView, repeatable=True)

    async def retry_batch(self, name: str, gathering: str, number: int) -> BatchView:
        """Another case for a batch whose case did not complete."""
        path = f"{_path(name)}/batches/{quote(gathering, safe='')}/{number}/retry"
        return await self._transport.ask("POST", path, BatchView)

    async def watches(self) -> list[WatchView]:
        return await self._transport.ask("GET", "/data/watches", list[WatchView])

    async def put_watch(self, watch: FolderWatch) -> WatchView:
        path = f"/data/watches/{quote(watch.name, safe='')}"
        return await self._transport.ask("PUT", path, WatchView, body=msgspec.to_builtins(watch), repeatable=True)

    async def remove_watch(self, name: str) -> WatchView:
        return await self._transport.ask("DELETE", f"/data/watches/{quote(name, safe='')}", WatchView)


def _path(name: str) -> str:
    return f"/data/sets/{quote(name, safe='')}"
