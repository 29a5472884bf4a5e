"""An embedded server on a data folder, for one command or for as long as a case runs.

It imports the whole server, so it is loaded only when a folder is opened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mendflow.cli.announced_wait import AnnouncedWait
from mendflow.cli.level_waits import level_waits
from mendflow.cli.local_client import LocalClient
from mendflow.cli.mail_options import mail_of_environment
from mendflow.cli.options import store_url
from mendflow.cli.password_warning import warn_of_password
from mendflow.cli.secret_options import key_of_environment, sources_of_environment
from mendflow.client import Client
from mendflow.core.model.errors import StoreUnavailable
from mendflow.wiring import RunningServer, ServerOptions, find_server, running_server

OTHER_COMMAND_S = 10.0
"""Wait this long if another command has the folder open."""


@asynccontextmanager
async def open_folder(folder: Path, store: str = "") -> AsyncIterator[Client]:
    """Open the folder, or a store, for one command. The server is not announced, because it ends in a moment."""
    warn_of_password(store)
    async with AsyncExitStack() as stack:
        server = await start_server(stack, folder, for_one_command=True, store=store)
        yield await stack.enter_async_context(client_of(server))


def client_of(server: RunningServer) -> Client:
    """On a store that servers share, a case may be on another server: the HTTP side knows which one to ask. Otherwise
    the embedded server is asked directly."""
    return Client(server.url) if server.shared else LocalClient(server.domain, server.url)


async def start_server(
    stack: AsyncExitStack,
    folder: Path,
    *,
    for_one_command: bool = False,
    store: str = "",
    hold: bool = False,
    stays: bool = False,
) -> RunningServer:
    """Open the folder; wait a moment if another command has it. `stays`: people use it until it is stopped, so it
    starts what is due by the clock, puts on record who did what, and other commands may give it flows."""
    options = ServerOptions(
        data=folder,
        store=store or store_url(),
        files_roots=None,
        announce=not for_one_command,
        listen=not for_one_command,
        mostly_pilots=True,
        stays=stays,
        continues_found=False,
        schedules=stays,
        audit=stays,
        levels_ms=level_waits(),
        holds_unhandled=hold,
        live_inputs_bytes=0,  # whoever runs it has the machine's memory
        mail=mail_of_environment(),
        secrets_key=key_of_environment(),
        secrets_from=sources_of_environment(),
    )
    return await enter_when_free(stack, options)


async def enter_when_free(
    stack: AsyncExitStack, options: ServerOptions, end: asyncio.Event | None = None
) -> RunningServer:
    """Start a server. Whoever holds its folder and serves nobody is a command, which is soon over: wait for it, unless
    `end` is set meanwhile."""
    wait = AnnouncedWait(f"another command has {options.data} open", OTHER_COMMAND_S)
    while True:
        try:
            return await stack.enter_async_context(running_server(options))
        except StoreUnavailable as error:
            is_unwanted = end is not None and end.is_set()
            if "holder" not in error.fields or find_server(options.data) or is_unwanted or wait.is_over():
                raise
        await asyncio.sleep(0.2)
