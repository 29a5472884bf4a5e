"""Which server a command talks to: the one that was named, else the one on the data folder, else the store in
MENDFLOW_STORE, else the folder itself.

With the last two, `mendflow cases` works after `mendflow run` has ended: the command opens the store with an embedded
server without pilots."""

import asyncio
import importlib
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from mendflow.cli.options import ServerTarget, store_url
from mendflow.cli.printing import say
from mendflow.cli.server_file import find_server
from mendflow.client import Client
from mendflow.core.model.errors import NotFound

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def has_server(target: ServerTarget) -> bool:
    """Whether a command asks a server that runs without it, and does not bring one of its own."""
    return bool(target.server) or find_server(target.folder) is not None


def say_folder(target: ServerTarget) -> None:
    """Which folder is used, if it is not the one where the command stands."""
    if target.above is not None:
        say(f"the cases are those of {target.above.parent} (--data-dir names another folder)", err=True)


@asynccontextmanager
async def connect(target: ServerTarget, *, begin: bool = False) -> AsyncIterator[Client]:
    """A client of the right server. `begin`: create the data folder if it does not exist."""
    say_folder(target)
    found = None if target.server else find_server(target.folder)
    if target.server:
        chosen: AbstractAsyncContextManager[Client] = Client(target.server, target.token())
    elif found is not None:
        chosen = Client(found.url, target.token())
    elif store := store_url():
        chosen = open_store(store)
    elif begin or (target.folder / "store.db").exists():
        chosen = _open_folder(target.folder)
    else:
        raise NotFound(
            f"there is nothing at {target.folder} yet; run a flow here first (mendflow run FLOW),"
            " or name a server by --server URL or MENDFLOW_SERVER, or a store by MENDFLOW_STORE"
        )
    async with chosen as client:
        yield client


@asynccontextmanager
async def open_store(store: str) -> AsyncIterator[Client]:
    """Open a store for one command, with an embedded server without pilots. For a file store, stored files are beside
    it; a store on a server contains them, and needs only a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mendflow-") as for_now:
        async with _open_folder(_folder_of_store(store) or Path(for_now), store) as client:
            yield client


def _folder_of_store(store: str) -> Path | None:
    """The folder of a store that is a file."""
    parts = urlsplit(store)
    if parts.scheme != "sqlite" or not parts.path:
        return None
    place = Path(unquote(parts.path)).absolute()
    return place if place.is_dir() else place.parent


def _open_folder(folder: Path, store: str = "") -> AbstractAsyncContextManager[Client]:
    """Loaded lazily: only a command that gets here pays for the server's modules."""
    opened: AbstractAsyncContextManager[Client] = importlib.import_module("mendflow.cli.local_cluster").open_folder(
        folder, store
    )
    return opened
