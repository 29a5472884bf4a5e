"""An embedded server on a data folder, with a pilot, to run a case."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mendflow.cli.embedded_server import client_of, start_server
from mendflow.cli.exit_codes import EnvironmentUnfit
from mendflow.cli.pilot_supervisor import PilotSupervisor
from mendflow.cli.server_file import refuse_if_taken
from mendflow.client import Client
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds
from mendflow.pilot.isolation.variables import EVERYTHING


class LocalCluster:
    """The server and pilot that run a case here. A pilot that ends unexpectedly is restarted; if it cannot run here,
    that is an error, because nothing would ever happen."""

    def __init__(self, client: Client, alarm: asyncio.Event, url: str) -> None:
        self.client = client
        self.url = url
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
    stays: bool = False,
    bounds: AttemptBounds = USUAL_BOUNDS,
) -> AsyncIterator[LocalCluster]:
    """A server in this process and a pilot beside it, on one data folder. `alarm` is set when the pilot cannot live.
    `hold`: a case whose failure no rule takes up is held for a person. `stays`: as for
    `start_server`."""
    refuse_if_taken(folder)
    async with AsyncExitStack() as stack:
        server = await start_server(stack, folder, hold=hold, stays=stays)
        client = await stack.enter_async_context(client_of(server))
        cluster = LocalCluster(client, alarm, server.url)
        supervisor = PilotSupervisor(
            server,
            folder,
            slots=slots,
            keep=keep,
            on_failure=cluster.trouble,
            bounds=bounds,
            words=["--pass-env", EVERYTHING],  # whoever runs it runs its jobs
        )
        supervision = asyncio.create_task(supervisor.supervise())

        async def stop_pilot() -> None:
            supervision.cancel()
            await supervisor.stop()

        cluster.stop_pilot = stop_pilot
        stack.push_async_callback(cluster.leave)
        yield cluster


async def _do_nothing() -> None: ...
