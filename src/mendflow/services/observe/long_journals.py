"""Long journals, replayed beside the server.

What the engine did is told by replaying its journal, and of a case with very many items that is seconds of work. So a
process of its own does it. It keeps what it knows of the case that was asked for last: whoever looks again costs as
much as has happened since. When nobody has asked for a while, it is ended."""

import asyncio
import logging
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.services.base.module_processes import ENDED, TaskProcess
from mendflow.services.cases.live_case import journal_of
from mendflow.services.observe import history
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.observe")

LONG_ENTRIES: Final = 5_000
"""A journal with more entries is replayed beside the server."""
ENTRIES_AT_ONCE: Final = 5_000
IDLE_S: Final = 120.0
PROCESS_MODULE: Final = "mendflow.services.observe.replay_process"


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


class _Replayed(NamedTuple):
    """How far the process has come with which case."""

    case: CaseId
    position: int


UNKNOWN: Final = _Replayed(CaseId(""), 0)


class LongJournals:
    """One process, for the case that was asked for last. Without `aside` everything is done here."""

    def __init__(self, *, aside: bool) -> None:
        self._aside = aside
        self._process = TaskProcess[ReplayTask, ReplayedJournal](PROCESS_MODULE, ReplayedJournal)
        self._known = UNKNOWN
        self._one_at_a_time = asyncio.Lock()
        self._end: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def read(self, store: Store, case: CaseId, last: int = 0, *, brief: bool = False) -> ReplayedJournal:
        """What the engine did: the last so many entries, or all; `brief`: so many without what it ordered."""
        if self._aside and await store.length(journal_of(case)) > LONG_ENTRIES:
            async with self._one_at_a_time:
                try:
                    return await self._ask(store, case, last, brief=brief)
                except ENDED as error:
                    await self._process.stop()
                    log.warning("the process that replays journals has ended: %r", error, extra={"case": case})
                except BaseException:
                    await self._process.stop()
                    raise
        reader = await history.read_journal(store, case)
        return ReplayedJournal(*reader.last_entries(last, brief=brief))

    async def _ask(self, store: Store, case: CaseId, last: int, *, brief: bool) -> ReplayedJournal:
        if self._end is not None:
            self._end.cancel()
        is_new = await self._process.start()
        position = self._known.position if self._known.case == case and not is_new else 0
        self._known = UNKNOWN
        while page := await store.read(journal_of(case), position, ENTRIES_AT_ONCE):
            await self._process.do(ReplayTask(case, page, anew=position == 0))
            position += len(page)
        told = await self._process.do(ReplayTask(case, [], last, brief=brief))
        self._known = _Replayed(case, position)
        self._end = asyncio.get_running_loop().call_later(IDLE_S, self._process.kill)
        return told

    async def stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
        await self._process.stop()
