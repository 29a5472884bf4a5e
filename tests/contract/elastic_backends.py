"""The contract suite's store on real OpenSearch, or on the light stand-in for Elasticsearch."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mendflow.stores.contract import Store
from mendflow.stores.elastic.store import ElasticStore
from tests.contract.backends import Backend, Given, Remote, name_of
from tests.servers import opensearch, osmem

STARTS_S = 150
"""A node may take so long to start on a busy machine."""


class Light(Backend):
    def make(self, place: Path) -> Store:
        return ElasticStore.from_url(f"elasticsearch://{osmem.address()}/{name_of(place)}")


class OpenSearch(Remote):
    server: opensearch.Node

    def __init__(self, server: opensearch.Node) -> None:
        self.server = server

    def make(self, place: Path) -> Store:
        return self.reach(place, patience_s=STARTS_S)

    def reach(self, place: Path, *, patience_s: float, port: int = 0) -> Store:
        return ElasticStore.from_url(self._url(place, patience_s, port))

    def source(self, place: Path) -> str:
        url = self._url(place, STARTS_S)
        return f"from mendflow.stores.elastic.store import ElasticStore\nstore = ElasticStore.from_url({url!r})"

    def _url(self, place: Path, patience_s: float, port: int = 0) -> str:
        return f"elasticsearch://127.0.0.1:{port or self.server.port}/{name_of(place)}?patience={patience_s}"


@contextmanager
def _light(folder: Path) -> Iterator[Backend]:
    yield Light()


@contextmanager
def _opensearch(folder: Path) -> Iterator[Backend]:
    node = opensearch.Node(folder)
    node.start()
    try:
        yield OpenSearch(node)
    finally:
        node.kill()


def give() -> None:
    """Let the suite run on real OpenSearch, or on the stand-in where that cannot run: the store is the same, and the
    suite would show nothing there that it does not show on the real one."""
    if opensearch.lacking():
        Given("elastic-light", Light, _light)
    else:
        Given("opensearch", OpenSearch, _opensearch)
