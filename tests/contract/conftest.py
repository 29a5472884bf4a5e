"""The suite's stores. `store` is each of them in turn, open and empty; `durable` and `remote` are the backends of those
that outlive a process, and of those that stand on a server. A server starts when the first test wants it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mendflow.stores.contract import Store
from tests.contract.backends import Backend, Durable, Given, Remote, names


@pytest.fixture(scope="session")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Backend]]:
    with ExitStack() as stack:
        ready: dict[str, Backend] = {}

        def backend(name: str) -> Backend:
            if name not in ready:
                ready[name] = stack.enter_context(Given.KNOWN[name].make(tmp_path_factory.mktemp(name)))
            return ready[name]

        yield backend


@pytest.fixture(params=names(Backend))
def backend(request: pytest.FixtureRequest, backends: Callable[[str], Backend]) -> Backend:
    return backends(request.param)


@pytest.fixture(params=names(Durable))
def durable(request: pytest.FixtureRequest, backends: Callable[[str], Backend]) -> Durable:
    found = backends(request.param)
    assert isinstance(found, Durable)
    return found


@pytest.fixture(params=names(Remote))
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
