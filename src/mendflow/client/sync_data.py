"""What is asked about logical files and storage elements, for programs that wait."""

from mendflow.client.sync_base import SyncBase
from mendflow.core.model.data import LogicalFile, Replica, ReplicaLocation, StorageElement


class SyncData(SyncBase):
    def data(
        self, *, prefix: str = "", data_set: str = "", after: str = "", limit: int = 100, every: bool = False
    ) -> list[LogicalFile]:
        return self._run(self._client.data(prefix=prefix, data_set=data_set, after=after, limit=limit, every=every))

    def datum(self, name: str) -> LogicalFile:
        return self._run(self._client.datum(name))

    def add_data(self, file: LogicalFile) -> LogicalFile:
        return self._run(self._client.add_data(file))

    def remove_data(self, name: str) -> LogicalFile:
        return self._run(self._client.remove_data(name))

    def places(self, name: str, *, site: str = "", storage: str = "") -> list[ReplicaLocation]:
        return self._run(self._client.places(name, site=site, storage=storage))

    def add_replica(self, name: str, replica: Replica) -> LogicalFile:
        return self._run(self._client.add_replica(name, replica))

    def remove_replica(self, name: str, replica: Replica) -> LogicalFile:
        return self._run(self._client.remove_replica(name, replica))

    def elements(self) -> list[StorageElement]:
        return self._run(self._client.elements())

    def element(self, name: str) -> StorageElement:
        return self._run(self._client.element(name))

    def put_element(self, element: StorageElement, *, replace: bool = False) -> StorageElement:
        return self._run(self._client.put_element(element, replace=replace))

    def remove_element(self, name: str) -> StorageElement:
        return self._run(self._client.remove_element(name))
