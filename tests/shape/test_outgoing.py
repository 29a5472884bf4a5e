"""Whoever opens a connection from a server's process is known here, with the reason why that is right. SE-5"""

import ast
import re
from pathlib import Path

from tests.shape.source import PACKAGE, nodes, python_files

OPENERS = frozenset(
    {
        *("ClientSession", "TCPConnector", "open_connection", "create_connection", "SMTP", "SMTP_SSL"),
        *("HTTPConnection", "HTTPSConnection", "urlopen", "urlretrieve"),
        *("_PinnedConnection", "_PinnedTlsConnection"),
    }
)
KNOWN = {
    "server/outgoing.py": "the guarded way out",
    "server/peers.py": "other servers on the store, by addresses in the store",
    "server/peer_requests.py": "the same",
    "server/otlp.py": "the collector that the server's owner names",
    "server/mail.py": "the mail server that the server's owner names",
    "stores/elastic/http.py": "the store",
    "client/transport.py": "a client's process: whoever runs it says where",
    "cli/connection.py": "a command's process: the server on this machine",
    "pilot/agent/http.py": "a pilot's process: its server",
    "transfer/sources.py": "a pilot's process; in a server's, storage elements that an administrator names",
    "transfer/guarded_web.py": "a pilot's process: the guarded way out to addresses that flows and jobs name",
    "pilot/cache/site_sharing.py": "a pilot's process: caches of its site, which the server names",
}


MAYBE_OPENED = re.compile("|".join(OPENERS))
"""Where it is not found nothing is opened, and the text need not be parsed."""


def opened_in(source: str) -> set[str]:
    if not MAYBE_OPENED.search(source):
        return set()
    called = (node.func for node in nodes(source) if isinstance(node, ast.Call))
    names = {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in called}
    return names & OPENERS


def test_nobody_else_opens_connections() -> None:  # SE-5
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in python_files("src")
        if path.is_relative_to(PACKAGE) and opened_in(Path(path).read_text())
    }
    assert found == KNOWN.keys()


def test_the_reader_sees_a_connection_that_is_opened() -> None:
    assert opened_in("import aiohttp\nasync def f():\n    async with aiohttp.ClientSession() as s: pass")
    assert opened_in("from smtplib import SMTP\nSMTP('h')")
    assert not opened_in("calls.request('GET', url)")
