"""A server in this process, on a data folder: alone, for one command, or with a pilot beside it, to run a case.

It brings the whole server with it, so it is loaded only when a folder is to be opened."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mendflow.cli.exits import Unfit
from mendflow.cli.server_file import refuse_if_taken
from mendflow.client import Client
from mendflow.core.model.problems import Conflict, StoreUnavailable
from mendflow.wiring import LocalPilot, RunningServer, ServerOptions, running_server, start_pilot

OTHER_COMMAND_S = 5.0
"""Another command may have the folder open; it will not be long."""

ORPHAN_MS = 60_000
"""A pilot whose server was killed is of no use to anybody after a while."""

PILOT_STARTS_MAX = 4
LOOK_EVERY_S = 0.5


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Client]:
    """The folder, for one command. Nobody else is to find this server, and lose it the next moment."""
    async with AsyncExitStack() as stack:
        server = await _serving(stack, folder, announce=False)
        yield await stack.enter_async_context(Client(server.url))


class Crew:
    """Who works on a case here. A pilot that ends before it is told to is started again; one that cannot live here is
    told about, because without it nothing would ever happen."""

    def __init__(self, client: Client, start: Callable[[], LocalPilot], alarm: asyncio.Event) -> None:
        self.client = client
        self._start = start
        self._alarm = alarm
        self._pilot = start()
        self._trouble = ""

    def check(self) -> None:
        """Raise if nobody is left to run jobs."""
        if self._trouble:
            raise Unfit(self._trouble)

    async def keep(self) -> None:
        """See that there is a pilot, for as long as this is not cancelled."""
        for _ in range(PILOT_STARTS_MAX):
            while self._pilot.process.poll() is None:
                await asyncio.sleep(LOOK_EVERY_S)
            await asyncio.sleep(LOOK_EVERY_S)
            self._pilot = self._start()
        self._trouble = f"the pilot ends as soon as it is started: {_last_words(self._pilot.log)}"
        self._alarm.set()

    async def stop(self) -> None:
        await self._pilot.stop()


@asynccontextmanager
async def here(folder: Path, alarm: asyncio.Event, *, slots: int, keep: bool = False) -> AsyncIterator[Crew]:
    """A server in this process and a pilot beside it, on one data folder. `alarm` is set when the pilot cannot live."""
    refuse_if_taken(folder)
    async with AsyncExitStack() as stack:
        server = await _serving(stack, folder)

        def start() -> LocalPilot:
            return start_pilot(
                server.url,
                work=folder / "work",
                slots=slots or os.cpu_count() or 1,
                token=server.pilot_token,
                extra=["--away-exit-ms", str(ORPHAN_MS), *(["--keep"] if keep else [])],
            )

        client = await stack.enter_async_context(Client(server.url))
        crew = Crew(client, start, alarm)
        stack.push_async_callback(crew.stop)
        keeping = asyncio.create_task(crew.keep())
        stack.callback(keeping.cancel)
        yield crew


def _last_words(log: Path) -> str:
    """The last line that the pilot wrote."""
    with log.open("rb") as source:
        source.seek(max(log.stat().st_size - 4096, 0))
        lines = source.read().decode(errors="replace").strip().splitlines()
    return f"{lines[-1] if lines else 'it said nothing'} (more in {log})"


async def _serving(stack: AsyncExitStack, folder: Path, *, announce: bool = True) -> RunningServer:
    """Open the folder; if another command has it just now, wait for a moment."""
    give_up_at = time.monotonic() + OTHER_COMMAND_S
    while True:
        try:
            options = ServerOptions(data=folder, files_roots=None, announce=announce)
            return await stack.enter_async_context(running_server(options))
        except (StoreUnavailable, Conflict):
            if time.monotonic() > give_up_at or not (folder / "store.db").exists():
                raise
            await asyncio.sleep(0.2)
