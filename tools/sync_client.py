"""Makes the client for scripts from the one for asyncio: `python tools/sync_client.py` writes it anew.

A method of `Client` that is awaited becomes one that waits. tests/client holds the file to what this makes."""

import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from mendflow.client.client import Client  # noqa: E402 - the package is found beside this folder

TARGET = ROOT / "src" / "mendflow" / "client" / "sync_client.py"
NOT_FOR_SCRIPTS = frozenset({"close", "sync"})
"""`close` does more here; `sync` is a pilot's, and pilots are no scripts."""

HEAD = '''"""The client for scripts: the methods of `Client`, each of which waits for its answer and does nothing else.

Made from `Client` by tools/sync_client.py; change that, and run it."""

from mendflow.client.blocking import BlockingClient, blocking
from mendflow.client.client import Client


class SyncClient(BlockingClient):
    """A client of one server. Use it as a context manager, or call `close` in the end."""

'''


def text() -> str:
    """The module as it should be."""
    calls = [name for name, _ in inspect.getmembers(Client, inspect.iscoroutinefunction) if not name.startswith("_")]
    return HEAD + "".join(f"    {name} = blocking(Client.{name})\n" for name in calls if name not in NOT_FOR_SCRIPTS)


if __name__ == "__main__":
    TARGET.write_text(text())
