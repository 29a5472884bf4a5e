"""A server in this process, on a data folder: alone, for one command, or with a pilot beside it, to run a case.

It brings the whole server with it, so it is loaded only when a folder is to be opened."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mendflow.cli.exits import Unfit
from mendflow.cli.level_waits import level_waits
from mendflow.cli.manning import Manning
from mendflow.cli.options import store_url
from mendflow.cli.passwords import warn_of_password
from mendflow.cli.server_file import refuse_if_taken
from mendflow.client import Client
from mendflow.core.model.problems import Conflict, StoreUnavailable
from mendflow.wiring import RunningServer, ServerOptions, running_server

OTHER_COMMAND_S = 5.0
"""Another command may have the folder open; it will not be long."""


@asynccontextmanager
async def opened(folder: Path, store: str = "") -> AsyncIterator[Client]:
    """The folder, or a store, for one command. Nobody else is to find this server, and lose it the next moment."""
    warn_of_password(store)
    async with AsyncExitStack() as stack:
        server = await _serving(stack, folder, announce=False, store=store)
        yield await stack.enter_async_context(Client(server.url))


class Crew:
    """Who works on a case here. A pilot that ends before it is told to is started again; one that cannot live here is
    told about, because without it nothing would ever happen."""

    def __init__(self, client: Client, alarm: asyncio.Event) -> None:
        self.client = client
        self.leave: Callable[[], Awaitable[None]] = _nobody
        self.left = False
        self._alarm = alarm
        self._trouble = ""

    def check(self) -> None:
        """Raise if nobody is left to run jobs."""
        if self._trouble:
            raise Unfit(self._trouble)

    def trouble(self, sentence: str) -> None:
        self._trouble = sentence
        self._alarm.set()


@asynccontextmanager
async def here(folder: Path, alarm: asyncio.Event, *, slots: int, keep: bool = False) -> AsyncIterator[Crew]:
    """A server in this process and a pilot beside it, on one data folder. `alarm` is set when the pilot cannot live."""
    refuse_if_taken(folder)
    async with AsyncExitStack() as stack:
        server = await _serving(stack, folder)
        client = await stack.enter_async_context(Client(server.url))
        crew = Crew(client, alarm)
        manning = Manning(server, folder, slots=slots, keep=keep, trouble=crew.trouble)
        keeping = asyncio.create_task(manning.keep())

        async def leave() -> None:
            """Send the pilot home; what runs may end within its grace."""
            keeping.cancel()
            if not crew.left:
                crew.left = True
                await manning.stop()

        crew.leave = leave
        stack.push_async_callback(leave)
        yield crew


async def _nobody() -> None: ...


async def _serving(stack: AsyncExitStack, folder: Path, *, announce: bool = True, store: str = "") -> RunningServer:
    """Open the folder; if another command has it just now, wait for a moment."""
    give_up_at = time.monotonic() + OTHER_COMMAND_S
    while True:
        try:
            options = ServerOptions(
                data=folder, store=store or store_url(), files_roots=None, announce=announce, levels_ms=level_waits()
            )
            return await stack.enter_async_context(running_server(options))
        except (StoreUnavailable, Conflict):
            if time.monotonic() > give_up_at or not (folder / "store.db").exists():
                raise
            await asyncio.sleep(0.2)
