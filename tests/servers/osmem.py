"""A light stand-in for Elasticsearch, for tests: one small program, in memory, up in a third of a second.

It knows sequence numbers, primary terms and create-only writes; it has no replicas, no disk and no lag. What it shows
is that we speak the protocol. What holds when nodes die is shown with real ones, in opensearch.py."""

import atexit
import functools
import hashlib
from pathlib import Path

from osmem_server import OsmemServer


def url(folder: Path) -> str:
    """The address of a store of its own for each folder, on a server that starts once and ends with the tests."""
    return f"{_address()}/{prefix(folder)}"


def prefix(folder: Path) -> str:
    return f"t{hashlib.sha256(str(folder).encode()).hexdigest()[:20]}"


@functools.cache
def _address() -> str:
    server = OsmemServer.start(japanese=False)
    atexit.register(server.close)
    return f"elasticsearch://{server.url.removeprefix('http://')}"
