"""Whom a command talks to: the server that was named, else the one that runs on the data folder, else the store that
MENDFLOW_STORE names, else the folder.

The last two make `mendflow cases` and its like work after `mendflow run` has ended: the command opens the store with a
server of its own, without pilots, for as long as it takes."""

import asyncio
import importlib
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from mendflow.cli.options import ServerTarget, store_url
from mendflow.cli.server_file import find_server
from mendflow.client import Client
from mendflow.core.model.errors import NotFound

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def has_server(target: ServerTarget) -> bool:
    """Whether a command asks a server that runs without it, and does not bring one of its own."""
    return bool(target.server) or find_server(target.folder) is not None


@asynccontextmanager
async def connect(target: ServerTarget, *, begin: bool = False) -> AsyncIterator[Client]:
    """A client of the right server. `begin`: where there is nothing yet, the data folder is begun."""
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
    """A store, for one command, with a server of its own that has no pilots. Beside a store that is a file lie the kept
    files; a store on a server has them itself, and needs a folder only for the moment."""
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
    """Loaded like a command is: only a command that comes to this pays for the server's machinery."""
    opened: AbstractAsyncContextManager[Client] = importlib.import_module("mendflow.cli.local_cluster").open_folder(
        folder, store
    )
    return opened
