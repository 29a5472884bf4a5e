"""The one who writes to PostgreSQL: groups what has gathered, sends it in one round trip, and always finds out.

A group is one call of one function in the database, and one transaction. With its documents it leaves its number and
its outcomes in the writer's own row. When the line breaks before the answer, the writer begins a new life in that row:
an older life's group that is still on its way is refused whole from then on, and one that is happening is waited for.
So the row tells the truth about the last group: its outcomes are there, or it never happened and is sent again.

Writes are sent in the order of their keys, so two servers never wait for each other in a circle."""

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
        self._life = 0  # 0: it must begin before anything is sent, or believed
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
        """Make sure that nothing that was sent, and given up, can happen any more: who reads then reads the truth."""
        if self._unsure:
            await self.put([])

    async def finish(self) -> None:
        """Returns when everything that was put has its answer."""
        self._ending = True
        self._work.set()
        await self._task
        if self._link is not None:
            with suppress(Error):  # others forget this writer in a day or two
                await self._link.execute(sql.END_LIFE, (self._id,))
            await self._link.close()

    async def _run(self) -> None:
        while self._gathered or not self._ending:
            await self._work.wait()
            self._work.clear()
            while self._gathered:
                group, self._gathered, _ = take_group(self._gathered)
                resolve(group, await self._answers(group))
                await asyncio.sleep(0)  # those who waited run now, and what they write in turn joins the next group

    async def _answers(self, group: list[WriteBatch]) -> list[WriteOutcomes | Exception]:
        try:
            return list(await self._written([writes for writes, _ in group]))
        except StoreUnavailable as error:
            return [error] * len(group)
        except Exception as error:  # noqa: BLE001 - the task must live, and whoever waits must hear of anything
            if len(group) == 1:
                return [_refusal(error)]
        # One batch holds something that cannot be stored. Alone, each finds its own answer.
        return [(await self._answers([batch]))[0] for batch in group]

    async def _written(self, batches: Sequence[Sequence[Write]]) -> list[WriteOutcomes]:
        write_group = WriteGroup([write for batch in batches for write in batch])
        self._number += 1
        made = iter(write_group.answers(await self._send(write_group)))
        return [list(islice(made, len(batch))) for batch in batches]

    async def _send(self, write_group: WriteGroup) -> list[int]:
        """What became of each write. Sent again only when it is known not to have happened."""
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
        """Connect, and take the writer's row; what became of the present group, if it happened."""
        if self._link is None:
            self._link = await connect(self._address)
        ((life, number, outcomes),) = await rows_of(self._link, sql.BEGIN_LIFE, (self._id,), prepare=True)
        self._life, self._unsure = life, False
        return list(outcomes) if number == self._number else None

    async def _look_after(self, error: Error) -> None:
        """Does the connection stand, and is our life the one that counts?"""
        if error.sqlstate == FENCED:
            self._life = 0
        if self._link is not None and (self._link.broken or self._link.closed):
            link, self._link = self._link, None
            self._life = 0
            await link.close()


def _cannot_be_stored(error: Error) -> bool:
    """Whether it is what was given that the server does not take: a text with the character 0, an id too long."""
    return isinstance(error, DataError) or error.sqlstate == TOO_LARGE


def _refusal(error: Exception) -> Exception:
    if isinstance(error, Error | UnicodeError):
        return BadDocument(f"this cannot be stored: {' '.join(str(error).split())}; ids must be plain text, and short")
    return error
