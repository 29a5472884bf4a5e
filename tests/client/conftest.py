"""The client's tests talk to the same servers as the server's."""

import socket

import pytest

from tests.server.conftest import client, domain, http, served, serving

__all__ = ["client", "domain", "http", "served", "serving"]


@pytest.fixture
def unused_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
