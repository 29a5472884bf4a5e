"""Notes that something was done through a server that keeps no record, on a store that has one.

Nothing in a chain tells that: it is whole, and does not have all that was done. One note in the life of a server is
enough to say so."""

import logging
from collections.abc import Callable

import msgspec

from mendflow.core.model.audit import AUDIT_GAP_KIND, AuditGap
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.services.audit.chain_store import ChainStore
from mendflow.services.base.contracts import TRIES
from mendflow.stores.contract import Put, Store, WriteDone

log = logging.getLogger("mendflow.audit")

_encode = msgspec.json.Encoder().encode


class UnrecordedActs:
    """`server` says the name of the server through which they are done."""

    def __init__(self, store: Store, server: Callable[[], str], now: Callable[[], Instant]) -> None:
        self._store = store
        self._chains = ChainStore(store)
        self._server = server
        self._now = now
        self._is_noted = False

    async def note(self) -> None:
        """Something is about to be done that nobody puts on record."""
        if self._is_noted:
            return
        self._is_noted = True
        try:
            if await self._chains.has_any():
                await self._count()
        except StoreUnavailable as error:
            self._is_noted = False
            log.warning("that acts are not put on record could not be noted: %s", error.message)

    async def _count(self) -> None:
        server = self._server()
        for _ in range(TRIES):
            before, version = await self._chains.gap(server)
            gap = AuditGap(server=server, count=before.count + 1 if before is not None else 1, at=self._now())
            [result] = await self._store.write([Put(AUDIT_GAP_KIND, server, _encode(gap), version)])
            if isinstance(result, WriteDone):
                return
