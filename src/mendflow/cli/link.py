"""Whom a command talks to: the server that was named, else the one that runs on the data folder, else the folder.

The last makes `mendflow cases` and its like work after `mendflow run` has ended: the command opens the folder with a
server of its own, without pilots, for as long as it takes."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mendflow.cli.options import Target
from mendflow.client import Client
from mendflow.core.model.problems import Conflict, NotFound, StoreUnavailable
from mendflow.wiring import RunningServer, ServerOptions, find_server, run, running_server, start_pilot

T = TypeVar("T")

OTHER_COMMAND_S = 5.0
"""Another command may have the folder open; it will not be long."""

ORPHAN_MS = 60_000
"""A pilot whose server was killed is of no use to anybody after a while."""


def waited(work: Coroutine[Any, Any, T]) -> T:
    return run(work)


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Client]:
    """A client of the right server."""
    if target.server:
        async with Client(target.server, target.token()) as client:
            yield client
        return
    found = find_server(target.folder)
    if found is not None:
        async with Client(found.url, found.token or target.token()) as client:
            yield client
        return
    if not (target.folder / "store.db").exists():
        raise NotFound(
            f"there is nothing at {target.folder} yet; run a flow here first (mendflow run FLOW),"
            " or name a server by --server URL or MENDFLOW_SERVER"
        )
    async with AsyncExitStack() as stack:
        server = await _opened(stack, target.folder)
        # It is here for this command alone: nobody else is to find it and lose it the next moment.
        (target.folder / "server.json").unlink(missing_ok=True)
        yield await stack.enter_async_context(Client(server.url, server.token))


@asynccontextmanager
async def here(folder: Path, *, slots: int, keep: bool = False) -> AsyncIterator[Client]:
    """A server in this process and a pilot beside it, on one data folder."""
    refuse_if_taken(folder)
    async with AsyncExitStack() as stack:
        server = await _opened(stack, folder)
        pilot = start_pilot(
            server.url,
            work=folder / "work",
            slots=slots or os.cpu_count() or 1,
            token=server.token,
            extra=["--away-exit-ms", str(ORPHAN_MS), *(["--keep"] if keep else [])],
        )
        stack.push_async_callback(pilot.stop)
        yield await stack.enter_async_context(Client(server.url, server.token))


def refuse_if_taken(folder: Path) -> None:
    """Two servers on one folder would fight; say so before anything is begun."""
    found = find_server(folder)
    if found is not None:
        raise Conflict(
            f"process {found.pid} already runs on {folder}; see it with mendflow watch last, wait for it,"
            " or give another folder by --data DIR",
            pid=found.pid,
        )


async def _opened(stack: AsyncExitStack, folder: Path) -> RunningServer:
    """Open the folder; if another command has it just now, wait for a moment."""
    give_up_at = time.monotonic() + OTHER_COMMAND_S
    while True:
        try:
            return await stack.enter_async_context(running_server(ServerOptions(data=folder, files_roots=None)))
        except (StoreUnavailable, Conflict):
            if time.monotonic() > give_up_at:
                raise
            await asyncio.sleep(0.2)
