"""Which server a command talks to: the one that was named, else the one on the data folder, else the store in
MENDFLOW_STORE, else the folder itself.

With the last two, `mendflow cases` works after `mendflow run` has ended: the command opens the store with an embedded
server without pilots."""

import asyncio
import importlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from mendflow.cli.announced_wait import AnnouncedWait
from mendflow.cli.options import ServerTarget, store_url
from mendflow.cli.printing import say
from mendflow.cli.server_file import ServerInfo, find_server
from mendflow.client import Client
from mendflow.client.server_file import lock_holder
from mendflow.core.model.errors import InvalidRequest, NotConnected, NotFound
from mendflow.tls import ClientTls

T = TypeVar("T")
BETWEEN_S = 30.0
"""Wait this long for a server that does not listen yet, or does not any more."""

LOOK_EVERY_S = 0.05


def run_async(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def has_server(target: ServerTarget) -> bool:
    """Whether a command asks a server that runs without it, and does not bring one of its own. One that is just
    starting is waited for."""
    return bool(target.server) or find_started(target.folder) is not None


def find_started(folder: Path) -> ServerInfo | None:
    """The server on the data folder; one that is just starting is waited for until it can be found, or has given up."""
    wait, own = _wait_for_server(folder), f"process {os.getpid()} on "
    while True:
        found, holder = find_server(folder), lock_holder(folder)
        if found is not None or holder is None or holder.startswith(own) or wait.is_over():
            return found
        time.sleep(LOOK_EVERY_S)


def _wait_for_server(folder: Path) -> AnnouncedWait:
    return AnnouncedWait(f"{folder}: a server is starting or ending there", BETWEEN_S)


async def serves(target: ServerTarget) -> bool:
    """As `has_server`, for a command that is under way."""
    return bool(target.server) or await _find_listening(target.folder) is not None


def say_folder(target: ServerTarget) -> None:
    """Which folder is used, if it is not the one where the command stands."""
    if target.above is not None:
        say(f"there is no data folder here: {target.above} is used (--data-dir names another)", err=True)


def refuse_to_change_above(target: ServerTarget) -> None:
    """Refuse to set or remove something in a data folder that was only found above: `run` and `serve` begin one of
    their own here, which would have nothing of it."""
    if (above := target.above) is not None:
        raise InvalidRequest(
            f"this would change {above}, which was found above this folder, while mendflow run and serve use"
            f" {target.own_folder}, which does not exist yet: say which one is meant, by --data-dir"
            f" {os.path.relpath(above)} or by --data-dir {os.path.relpath(target.own_folder)}"
        )


@asynccontextmanager
async def connect(target: ServerTarget, *, begin: bool = False) -> AsyncIterator[Client]:
    """A client of the right server. `begin`: create the data folder if it does not exist."""
    say_folder(target)
    found = None if target.server else await _find_answering(target)
    if target.server:
        chosen: AbstractAsyncContextManager[Client] = Client(target.server, target.token())
    elif found is not None:
        chosen = found
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


async def _find_answering(target: ServerTarget) -> Client | None:
    """A client of the server on the data folder, which has answered it once: one that was found may be about to end, as
    that of a case that was just over, and take no request any more."""
    while (found := await _find_listening(target.folder)) is not None:
        client = Client(found.url, target.token(), tls=ClientTls(pin=found.tls_pin))
        try:
            await client.health()
        except NotConnected:
            await client.close()
            if find_server(target.folder) == found:
                raise
        except BaseException:
            await client.close()
            raise
        else:
            return client
    return None


async def _find_listening(folder: Path) -> ServerInfo | None:
    """The server on the data folder. One that is just starting has the folder and cannot be asked yet, and one that
    does not listen any more, as that of a case that was just over, is about to end: wait until it can be asked, or its
    folder can be opened."""
    wait = _wait_for_server(folder)
    while True:
        found = find_server(folder)
        if await _listens(found.url) if found is not None else lock_holder(folder) is None:
            return found
        if wait.is_over():
            return found
        await asyncio.sleep(LOOK_EVERY_S)


async def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        return False
    writer.close()
    return True


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
    opened: AbstractAsyncContextManager[Client] = importlib.import_module("mendflow.cli.embedded_server").open_folder(
        folder, store
    )
    return opened
