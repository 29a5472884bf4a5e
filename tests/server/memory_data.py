"""Logical files and storage elements of the domain in memory."""

from msgspec.structs import replace

from mendflow.core.data.paths import logical_name
from mendflow.core.model.data import (
    LocateAnswer,
    Located,
    LocateRequest,
    LogicalFile,
    PlaceAnswer,
    PlaceRequest,
    Replica,
    StorageElement,
)
from mendflow.core.model.problems import NotFound


class MemoryData:
    def __init__(self) -> None:
        self._logical: dict[str, LogicalFile] = {}
        self._elements: dict[str, StorageElement] = {}

    async def data(
        self, *, prefix: str = "", data_set: str = "", after: str = "", limit: int = 100, every: bool = False
    ) -> list[LogicalFile]:
        return [file for name, file in sorted(self._logical.items()) if name.startswith(prefix) and name > after][
            :limit
        ]

    async def datum(self, name: str) -> LogicalFile:
        if (name := logical_name(name)) not in self._logical:
            raise NotFound(f"there is no file {name}")
        return self._logical[name]

    async def add_data(self, file: LogicalFile, *, who: str) -> LogicalFile:
        return self._logical.setdefault(file.name, file)

    async def remove_data(self, name: str, *, who: str) -> LogicalFile:
        return self._logical.pop((await self.datum(name)).name)

    async def add_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile:
        file = await self.datum(name)
        self._logical[file.name] = replace(file, replicas=(*file.replicas, replica))
        return self._logical[file.name]

    async def remove_replica(self, name: str, replica: Replica, *, who: str) -> LogicalFile:
        file = await self.datum(name)
        self._logical[file.name] = replace(file, replicas=tuple(each for each in file.replicas if each != replica))
        return self._logical[file.name]

    async def places(self, name: str, *, site: str = "", storage: str = "") -> list[Located]:
        file = await self.datum(name)
        return [Located(element=(it := self._elements[each.element]), url=it.url + file.name) for each in file.replicas]

    async def elements(self) -> list[StorageElement]:
        return list(self._elements.values())

    async def element(self, name: str) -> StorageElement:
        if name not in self._elements:
            raise NotFound(f"there is no storage element {name!r}")
        return self._elements[name]

    async def put_element(self, element: StorageElement, *, who: str, replace: bool = False) -> StorageElement:
        self._elements[element.name] = element
        return element

    async def remove_element(self, name: str, *, who: str) -> StorageElement:
        element = await self.element(name)
        del self._elements[name]
        return element

    async def locate(self, request: LocateRequest) -> LocateAnswer:
        known = {name: await self.places(name) for name in request.names if name in self._logical}
        return LocateAnswer(files=known, wrong={name: "not known" for name in request.names if name not in known})

    async def place(self, request: PlaceRequest, *, who: str = "") -> PlaceAnswer:
        return PlaceAnswer(wrong=dict.fromkeys(request.files, f"nowhere to go for {who}"))
