"""Delivers something to one address: retries with growing waits, for a bounded time.

What to deliver is a document in an outbox, in the same tree of cases as its subject. It keeps the tree on its server
until it is delivered; a server that takes the tree over delivers it, and a crash at any point repeats a delivery under
the same id and loses none.

Each address has few connections, so a dead one delays only itself. Waits double from a second to ten minutes, and are
randomized, so that what failed together is not retried together."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import only, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import read_or_leave_out
from mendflow.stores.contract import Store

SENDS_PER_ADDRESS_MAX: Final = 4
FIRST_WAIT_MS: Final = 1_000
LONGEST_WAIT_MS: Final = 600_000
PATIENCE_MS: Final = 24 * 3_600_000

Attempt = Callable[[], Awaitable[str | None]]
"""One try: empty if it was accepted, else why not; None if it is no longer wanted."""


def wait_ms(tries: int, chance: float) -> int:
    """How long to wait after so many failed tries; `chance` is between 0 and 1."""
    longest = min(FIRST_WAIT_MS << min(tries - 1, 20), LONGEST_WAIT_MS)
    return int(longest * (0.5 + chance / 2))


class _AddressSlots:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(SENDS_PER_ADDRESS_MAX)
        self.users = 0


class RetryingSender:
    def __init__(self, clock: Clock, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._chance = chance
        self._slots_by_address: dict[str, _AddressSlots] = {}

    async def deliver(
        self, to: str, attempt: Attempt, *, tries: int, until: Instant, failed: Callable[[int], Awaitable[None]]
    ) -> str:
        """Retry until it is delivered, is no longer wanted, or the time is over: then return why it last failed.
        `failed` is called after each failed try."""
        why: str | None = "it was not tried in time"
        while True:
            if tries:
                await self._clock.sleep(wait_ms(tries, self._chance()))
                if self._clock.now() >= until:
                    return why or ""
            async with self._slot(to):
                why = await attempt()
            if not why:
                return ""
            tries += 1
            await failed(tries)

    @asynccontextmanager
    async def _slot(self, to: str) -> AsyncIterator[None]:
        lanes = self._slots_by_address.setdefault(to, _AddressSlots())
        lanes.users += 1
        try:
            async with lanes.free:
                yield
        finally:
            lanes.users -= 1
            if not lanes.users:
                self._slots_by_address.pop(to, None)


class HasId(Protocol):
    id: str


Document = TypeVar("Document", bound=HasId)


class Outbox(Generic[Document]):
    """Documents of one kind that wait until they are delivered, by id, and the tasks that deliver them."""

    def __init__(self, kind: str, type: type[Document], store: Store, ledger: Ledger, homes: HomeRegistry) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(type).decode
        self._store = store
        self._ledger = ledger
        self._homes = homes
        self.waiting: dict[str, Document] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def load(self, roots: Collection[CaseId]) -> AsyncIterator[Document]:
        """Load what waits in these trees. Call this before their cases are loaded: an end that is reported again must
        be recognised."""
        async for found in self._store.scan(self._kind, only(roots)):
            if root_of(found.id) not in roots or found.id in self.waiting:
                continue
            if (document := read_or_leave_out(found, self._decode)) is not None:
                self._ledger.known(self._kind, found.id, found.version)
                yield self._hold(document)

    def add(self, document: Document) -> None:
        self.save(self._hold(document))

    def save(self, document: Document) -> None:
        self._ledger.touch(self._kind, document.id, document)

    def remove(self, document: Document) -> None:
        """Remove a document: it was delivered everywhere, or given up."""
        del self.waiting[document.id]
        self._ledger.drop(self._kind, document.id)
        self._homes.release(document.id, f"{self._kind} {document.id}")

    def _hold(self, document: Document) -> Document:
        self._homes.hold(document.id, f"{self._kind} {document.id}")
        self.waiting[document.id] = document
        return document

    def deliver(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Deliver in the background once its document is on disk, unless a delivery of that name is in progress."""
        if name not in self._tasks:
            self._tasks[name] = task = asyncio.create_task(self._deliver(work), name=name)
            task.add_done_callback(lambda ended: self._tasks.pop(ended.get_name()))

    async def _deliver(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await self._ledger.settled()
            await work()
        except StoreUnavailable:
            return  # everything is loaded again, including this outbox

    async def stop(self) -> None:
        await cancel_tasks(*self._tasks.values())
