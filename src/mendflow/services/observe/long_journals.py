"""Long journals, replayed beside the server.

What the engine did is told by replaying its journal, and of a case with very many items that is seconds of work. So a
process of its own does it. It keeps what it knows of the case that was asked for last: whoever looks again costs as
much as has happened since. When nobody has asked for a while, it is ended."""

import asyncio
import logging
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.services.base.module_processes import start_module
from mendflow.services.cases.live_case import journal_of
from mendflow.services.observe import history
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.observe")

LONG_ENTRIES: Final = 5_000
"""A journal with more entries is replayed beside the server."""
ENTRIES_AT_ONCE: Final = 5_000
IDLE_S: Final = 120.0
PROCESS_MODULE: Final = "mendflow.services.observe.replay_process"
BUFFER_BYTES: Final = 1 << 24
LENGTH_BYTES: Final = 8


class ReplayTask(msgspec.Struct, frozen=True, array_like=True):
    """What the process is given: the next entries of a journal, and how many of the last entries of the history it
    shall tell; None: none yet, 0: all; `brief`: without what the engine ordered. A task for another case, or one
    `anew`, begins with the first entry."""

    case: CaseId
    entries: list[bytes]
    last: int | None = None
    anew: bool = False
    brief: bool = False


class ReplayedJournal(msgspec.Struct, frozen=True, array_like=True):
    """The last entries of what the engine did, and the serials of the items that these end."""

    entries: list[HistoryEntry] = []
    serials: list[int] = []


class _Replay(NamedTuple):
    """A process, and how far it has come with which case."""

    process: asyncio.subprocess.Process
    case: CaseId
    position: int


_encode = msgspec.msgpack.Encoder().encode


class LongJournals:
    """One process, for the case that was asked for last. Without `aside` everything is done here."""

    def __init__(self, *, aside: bool) -> None:
        self._aside = aside
        self._replay: _Replay | None = None
        self._one_at_a_time = asyncio.Lock()
        self._end: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._replay.process.pid if self._replay is not None else None

    async def read(self, store: Store, case: CaseId, last: int = 0, *, brief: bool = False) -> ReplayedJournal:
        """What the engine did: the last so many entries, or all; `brief`: so many without what it ordered."""
        if self._aside and await store.length(journal_of(case)) > LONG_ENTRIES:
            async with self._one_at_a_time:
                try:
                    return await self._ask(store, case, last, brief=brief)
                except (OSError, asyncio.IncompleteReadError) as error:
                    await self._stop()
                    log.warning("the process that replays journals has ended: %r", error, extra={"case": case})
                except BaseException:
                    await self._stop()  # what it answers now would be taken for the answer to the next task
                    raise
        reader = await history.read_journal(store, case)
        return ReplayedJournal(*reader.last_entries(last, brief=brief))

    async def _ask(self, store: Store, case: CaseId, last: int, *, brief: bool) -> ReplayedJournal:
        if self._end is not None:
            self._end.cancel()
        known = self._replay
        if known is None or known.process.returncode is not None:
            process = await start_module(PROCESS_MODULE, is_heard=True, buffer_bytes=BUFFER_BYTES)
            known = _Replay(process, CaseId(""), 0)
        position = known.position if known.case == case else 0
        self._replay = _Replay(known.process, CaseId(""), 0)
        while page := await store.read(journal_of(case), position, ENTRIES_AT_ONCE):
            await self._send(known.process, ReplayTask(case, page, anew=position == 0))
            position += len(page)
        told = await self._send(known.process, ReplayTask(case, [], last, brief=brief))
        self._replay = _Replay(known.process, case, position)
        self._end = asyncio.get_running_loop().call_later(IDLE_S, known.process.kill)
        return msgspec.msgpack.decode(told, type=ReplayedJournal)

    async def _send(self, process: asyncio.subprocess.Process, task: ReplayTask) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        given = _encode(task)
        process.stdin.write(len(given).to_bytes(LENGTH_BYTES, "big"))
        process.stdin.write(given)
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
        return await process.stdout.readexactly(length)

    async def stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
        await self._stop()

    async def _stop(self) -> None:
        replay, self._replay = self._replay, None
        if replay is not None and replay.process.returncode is None:
            with suppress(ProcessLookupError):
                replay.process.kill()
            await replay.process.wait()
