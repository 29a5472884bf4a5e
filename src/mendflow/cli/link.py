"""Whom a command talks to: the server that was named, else the one that runs on the data folder, else the folder.

The last makes `mendflow cases` and its like work after `mendflow run` has ended: the command opens the folder with a
server of its own, without pilots, for as long as it takes."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mendflow.cli.options import Target
from mendflow.cli.server_file import find_server
from mendflow.client import Client
from mendflow.core.model.problems import NotFound

T = TypeVar("T")


def waited(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Client]:
    """A client of the right server."""
    found = None if target.server else find_server(target.folder)
    if target.server:
        chosen: AbstractAsyncContextManager[Client] = Client(target.server, target.token())
    elif found is not None:
        chosen = Client(found.url, target.token())
    elif (target.folder / "store.db").exists():
        chosen = _opened(target.folder)
    else:
        raise NotFound(
            f"there is nothing at {target.folder} yet; run a flow here first (mendflow run FLOW),"
            " or name a server by --server URL or MENDFLOW_SERVER"
        )
    async with chosen as client:
        yield client


def _opened(folder: Path) -> AbstractAsyncContextManager[Client]:
    """Loaded like a command is: only a command that comes to this pays for the server's machinery."""
    opened: AbstractAsyncContextManager[Client] = importlib.import_module("mendflow.cli.embedded").opened(folder)
    return opened
