"""The suite's stores. `store` is each of them in turn, open and empty; `durable` and `remote` are the backends of those
that outlive a process, and of those that stand on a server. A server starts when the first test wants it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from mendflow.stores.contract import Store
from tests.contract import elastic_backends
from tests.contract.backends import Backend, Durable, Given, Remote, names
from tests.servers import opensearch

elastic_backends.give()
collect_ignore = ["test_elastic_cluster.py"] if opensearch.lacking() else []


def stores(kind: type) -> list[ParameterSet]:
    """The backends of a kind. Those on real OpenSearch are marked: check.py runs them in a stage of their own."""
    marks = {"opensearch": pytest.mark.opensearch}
    return [pytest.param(name, marks=marks.get(name, ())) for name in names(kind)]


@pytest.fixture(scope="session")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Backend]]:
    with ExitStack() as stack:
        ready: dict[str, Backend] = {}

        def backend(name: str) -> Backend:
            if name not in ready:
                ready[name] = stack.enter_context(Given.KNOWN[name].make(tmp_path_factory.mktemp(name)))
            return ready[name]

        yield backend


@pytest.fixture(params=stores(Backend))
def backend(request: pytest.FixtureRequest, backends: Callable[[str], Backend]) -> Backend:
    return backends(request.param)


@pytest.fixture(params=stores(Durable))
def durable(request: pytest.FixtureRequest, backends: Callable[[str], Backend]) -> Durable:
    found = backends(request.param)
    assert isinstance(found, Durable)
    return found


@pytest.fixture(params=stores(Remote))
def remote(request: pytest.FixtureRequest, backends: Callable[[str], Backend]) -> Iterator[Remote]:
    found = backends(request.param)
    assert isinstance(found, Remote)
    yield found
    found.server.start()


@pytest.fixture
async def store(backend: Backend, tmp_path: Path) -> AsyncIterator[Store]:
    store = backend.make(tmp_path)
    await store.open()
    yield store
    await store.close()
