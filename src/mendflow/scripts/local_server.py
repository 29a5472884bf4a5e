"""The server that flows of a script run on: one that was named, one that runs on the data folder, or one of its own.

One of its own, with a pilot beside it, is started when a flow is, and stopped when none has run for a while: then
other commands can have the folder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from mendflow.cli.local_cluster import LocalCluster, start_local_cluster
from mendflow.client import Client
from mendflow.client.server_file import find_server

IDLE_S: Final = 10.0


class ScriptServer:
    """To be used in one event loop."""

    def __init__(self, server: str, token: str, folder: Path, jobs: int) -> None:
        self._server = server
        self._token = token
        self.folder = folder
        self._jobs = jobs
        self._stack: AsyncExitStack | None = None
        self._client: Client | None = None
        self._cluster: LocalCluster | None = None
        self._users = 0
        self._opening = asyncio.Lock()
        self._ending: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_here(self) -> bool:
        """Whether flows run in the data folder, and not at a server that was named."""
        return not self._server

    async def acquire(self) -> Client:
        """The client, for a run that begins."""
        async with self._opening:
            self._users += 1
            if self._ending is not None:
                self._ending.cancel()
                self._ending = None
            try:
                return await self._open()
            except BaseException:
                self._users -= 1
                raise

    def release(self) -> None:
        """A run has ended."""
        self._users -= 1
        if self._users == 0:
            self._ending = asyncio.get_running_loop().call_later(IDLE_S, self._begin_to_close)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """The client, for a question about a run that may have ended long ago. The server stays until it is
        answered."""
        client = await self.acquire()
        try:
            yield client
        finally:
            self.release()

    def check(self) -> None:
        """Raise if no pilot is left to run jobs."""
        if self._cluster is not None:
            self._cluster.check()

    async def close(self) -> None:
        """Stop it, whoever uses it."""
        async with self._opening:
            await self._close()

    async def _close(self) -> None:
        stack, self._stack, self._client, self._cluster = self._stack, None, None, None
        if stack is not None:
            await stack.aclose()

    async def _open(self) -> Client:
        if self._client is not None:
            return self._client
        async with AsyncExitStack() as stack:
            found = None if self._server else find_server(self.folder)
            if self._server:
                client = await stack.enter_async_context(Client(self._server, self._token))
            elif found is not None and found.stays:
                client = await stack.enter_async_context(Client(found.url, self._token))
            else:
                alarm = asyncio.Event()
                self._cluster = await stack.enter_async_context(
                    start_local_cluster(self.folder, alarm, slots=self._jobs)
                )
                client = self._cluster.client
            self._client, self._stack = client, stack.pop_all()
        return client

    def _begin_to_close(self) -> None:
        self._ending = None
        self._closing = asyncio.ensure_future(self._close_if_idle())

    async def _close_if_idle(self) -> None:
        async with self._opening:
            if self._users == 0:  # somebody may have come while it waited for the lock
                await self._close()
