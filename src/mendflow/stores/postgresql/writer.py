"""The writer of the PostgreSQL store: sends queued writes as one group in one round trip, and always finds out their
result.

A group is one call of one database function, and one transaction. Together with its documents it stores its number and
its results in the writer's own row. When the connection breaks before the answer, the writer starts a new *life* in
that row: a group of an older life that is still in transit is refused as a whole, and one that is running is waited
for. So the row is always right about the last group: its results are there, or it never happened and is sent again.

Writes are sent in the order of their keys, so two servers never deadlock."""

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from psycopg import DataError, Error

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.contract import Write
from mendflow.stores.fields import BadDocument
from mendflow.stores.postgresql import queries as sql
from mendflow.stores.postgresql.address import PostgresqlAddress
from mendflow.stores.postgresql.connections import Connection, connect, is_transient, rows_of, unavailable
from mendflow.stores.postgresql.write_groups import WriteGroup
from mendflow.stores.retry import RetryTimer
from mendflow.stores.write_batches import WriteBatch, WriteOutcomes, resolve, take_group

FENCED = "MF001"
TOO_LARGE = "54000"


class PostgresqlWriter:
    def __init__(self, address: PostgresqlAddress) -> None:
        self._address = address
        self._id = uuid.uuid4()
        self._link: Connection | None = None
        self._life = 0  # 0: a life must begin before anything is sent, or trusted
        self._number = 0
        self._unsure = False
        self._gathered: list[WriteBatch] = []
        self._work = asyncio.Event()
        self._ending = False
        self._task = asyncio.create_task(self._run(), name="postgresql-writer")

    def put(self, writes: Sequence[Write]) -> "asyncio.Future[WriteOutcomes]":
        future: asyncio.Future[WriteOutcomes] = asyncio.get_running_loop().create_future()
        self._gathered.append((writes, future))
        self._work.set()
        return future

    async def settle(self) -> None:
        """Make sure that nothing that was sent and given up can still happen: what is read afterwards is final."""
        if self._unsure:
            await self.put([])

    async def finish(self) -> None:
        """Returns when all queued writes are answered."""
        self._ending = True
        self._work.set()
        await self._task
        if self._link is not None:
            with suppress(Error):  # other servers remove this writer's row in a day or two
                await self._link.execute(sql.END_LIFE, (self._id,))
            await self._link.close()

    async def _run(self) -> None:
        while self._gathered or not self._ending:
            await self._work.wait()
            self._work.clear()
            while self._gathered:
                group, self._gathered, _ = take_group(self._gathered)
                resolve(group, await self._answers(group))
                await asyncio.sleep(0)  # the callers run now, and their next writes join the next group

    async def _answers(self, group: list[WriteBatch]) -> list[WriteOutcomes | Exception]:
        try:
            return list(await self._written([writes for writes, _ in group]))
        except StoreUnavailable as error:
            return [error] * len(group)
        except Exception as error:  # noqa: BLE001 - the task must live, and whoever waits must hear of anything
            if len(group) == 1:
                return [_refusal(error)]
        # One batch has something that cannot be stored. Sent alone, each gets its own answer.
        return [(await self._answers([batch]))[0] for batch in group]

    async def _written(self, batches: Sequence[Sequence[Write]]) -> list[WriteOutcomes]:
        write_group = WriteGroup([write for batch in batches for write in batch])
        self._number += 1
        made = iter(write_group.answers(await self._send(write_group)))
        return [list(islice(made, len(batch))) for batch in batches]

    async def _send(self, write_group: WriteGroup) -> list[int]:
        """The result of each write. Sends again only what certainly did not happen."""
        patience = RetryTimer(self._address.patience_s)
        while True:
            try:
                if self._life == 0 and (known := await self._begin_life()) is not None:
                    return known
                assert self._link is not None
                params = (self._id, self._life, self._number, *write_group.params)
                ((made,),) = await rows_of(self._link, sql.WRITE_GROUP, params, prepare=True)
                return list(made)
            except Error as error:
                await self._look_after(error)
                if _cannot_be_stored(error):
                    raise
                if not (is_transient(error) or error.sqlstate == FENCED) or not await patience.wait():
                    self._unsure = self._life == 0
                    raise unavailable(self._address, error) from error

    async def _begin_life(self) -> list[int] | None:
        """Connect and take the writer's row; returns the results of the current group, if it happened."""
        if self._link is None:
            self._link = await connect(self._address)
        ((life, number, outcomes),) = await rows_of(self._link, sql.BEGIN_LIFE, (self._id,), prepare=True)
        self._life, self._unsure = life, False
        return list(outcomes) if number == self._number else None

    async def _look_after(self, error: Error) -> None:
        """Check that the connection works and that our life is the current one."""
        if error.sqlstate == FENCED:
            self._life = 0
        if self._link is not None and (self._link.broken or self._link.closed):
            link, self._link = self._link, None
            self._life = 0
            await link.close()


def _cannot_be_stored(error: Error) -> bool:
    """Whether the server rejects the data itself: a text with the character 0, an id that is too long."""
    return isinstance(error, DataError) or error.sqlstate == TOO_LARGE


def _refusal(error: Exception) -> Exception:
    if isinstance(error, Error | UnicodeError):
        return BadDocument(f"this cannot be stored: {' '.join(str(error).split())}; ids must be plain text, and short")
    return error
