"""A light stand-in for Elasticsearch, for tests: one small program, in memory, up in a third of a second.

It knows sequence numbers, primary terms and create-only writes; it has no replicas, no disk and no lag. What it shows
is that we speak the protocol. What holds when nodes die is shown with real ones, in opensearch.py."""

import atexit
import functools

from osmem_server import OsmemServer


@functools.cache
def address() -> str:
    """Host and port of a server that starts when it is first wanted and ends with the tests."""
    server = OsmemServer.start(japanese=False)
    atexit.register(server.close)
    return str(server.url).removeprefix("http://")
