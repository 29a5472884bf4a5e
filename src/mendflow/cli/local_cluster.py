"""An embedded server on a data folder: alone, for one command, or with a pilot, to run a case.

It imports the whole server, so it is loaded only when a folder is opened."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mendflow.cli.exit_codes import EnvironmentUnfit
from mendflow.cli.level_waits import level_waits
from mendflow.cli.local_client import LocalClient
from mendflow.cli.options import store_url
from mendflow.cli.password_warning import warn_of_password
from mendflow.cli.pilot_supervisor import PilotSupervisor
from mendflow.cli.server_file import refuse_if_taken
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, StoreUnavailable
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds
from mendflow.wiring import RunningServer, ServerOptions, running_server

OTHER_COMMAND_S = 5.0
"""Wait this long if another command has the folder open."""


@asynccontextmanager
async def open_folder(folder: Path, store: str = "") -> AsyncIterator[Client]:
    """Open the folder, or a store, for one command. The server is not announced, because it ends in a moment."""
    warn_of_password(store)
    async with AsyncExitStack() as stack:
        server = await _start_server(stack, folder, for_one_command=True, store=store)
        yield await stack.enter_async_context(_client_of(server))


def _client_of(server: RunningServer) -> Client:
    """On a store that servers share, a case may be on another server: the HTTP side knows which one to ask. Otherwise
    the embedded server is asked directly."""
    return Client(server.url) if server.shared else LocalClient(server.domain, server.url)


class LocalCluster:
    """The server and pilot that run a case here. A pilot that ends unexpectedly is restarted; if it cannot run here,
    that is an error, because nothing would ever happen."""

    def __init__(self, client: Client, alarm: asyncio.Event) -> None:
        self.client = client
        self.stop_pilot: Callable[[], Awaitable[None]] = _do_nothing
        self._leaving: asyncio.Task[None] | None = None
        self._alarm = alarm
        self._trouble = ""

    def check(self) -> None:
        """Raise if no pilot is left to run jobs."""
        if self._trouble:
            raise EnvironmentUnfit(self._trouble)

    def begin_leaving(self) -> None:
        """Stop the pilot; running jobs may end within its grace period. What the server knows can still be asked."""
        if self._leaving is None:
            self._leaving = asyncio.ensure_future(self.stop_pilot())

    async def leave(self) -> None:
        """Stop the pilot, and wait until it has ended."""
        self.begin_leaving()
        assert self._leaving is not None
        await self._leaving

    def trouble(self, sentence: str) -> None:
        self._trouble = sentence
        self._alarm.set()


@asynccontextmanager
async def start_local_cluster(
    folder: Path,
    alarm: asyncio.Event,
    *,
    slots: int,
    keep: bool = False,
    hold: bool = False,
    bounds: AttemptBounds = USUAL_BOUNDS,
) -> AsyncIterator[LocalCluster]:
    """A server in this process and a pilot beside it, on one data folder. `alarm` is set when the pilot cannot live.
    `hold`: a case whose failure no rule takes up is held for a person."""
    refuse_if_taken(folder)
    async with AsyncExitStack() as stack:
        server = await _start_server(stack, folder, hold=hold)
        client = await stack.enter_async_context(_client_of(server))
        cluster = LocalCluster(client, alarm)
        supervisor = PilotSupervisor(server, folder, slots=slots, keep=keep, on_failure=cluster.trouble, bounds=bounds)
        supervision = asyncio.create_task(supervisor.supervise())

        async def stop_pilot() -> None:
            supervision.cancel()
            await supervisor.stop()

        cluster.stop_pilot = stop_pilot
        stack.push_async_callback(cluster.leave)
        yield cluster


async def _do_nothing() -> None: ...


async def _start_server(
    stack: AsyncExitStack, folder: Path, *, for_one_command: bool = False, store: str = "", hold: bool = False
) -> RunningServer:
    """Open the folder; wait a moment if another command has it."""
    give_up_at = time.monotonic() + OTHER_COMMAND_S
    while True:
        try:
            options = ServerOptions(
                data=folder,
                store=store or store_url(),
                files_roots=None,
                announce=not for_one_command,
                listen=not for_one_command,
                mostly_pilots=True,
                continues_found=False,
                levels_ms=level_waits(),
                holds_unhandled=hold,
            )
            return await stack.enter_async_context(running_server(options))
        except (StoreUnavailable, Conflict):
            if time.monotonic() > give_up_at or not (folder / "store.db").exists():
                raise
            await asyncio.sleep(0.2)
