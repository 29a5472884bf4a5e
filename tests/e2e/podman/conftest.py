"""A real podman, and pilots that use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.marked import below
from tests.servers import podman as servers
from tests.servers.podman import Podman

collect_ignore_glob = ["test_*.py"] if servers.lacking() else []
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in below(items, HERE):
        item.add_marker(pytest.mark.podman)


@pytest.fixture(scope="session")
def podman_store() -> Iterator[Podman]:
    with servers.podman() as made:
        yield made


@pytest.fixture
def podman(podman_store: Podman, monkeypatch: pytest.MonkeyPatch) -> Iterator[Podman]:
    """Nothing is left over when a test ends, whatever it killed."""
    for name, value in podman_store.settings.items():
        monkeypatch.setenv(name, value)
    podman_store.calls.write_text("")
    yield podman_store
    left = podman_store.containers()
    podman_store.run("rm", "--all", "--force", "--time", "0")
    assert not left, "a container was left over"
