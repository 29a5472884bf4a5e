"""The audit log of a running server: its writer, and the hourly removal of what is too old."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from mendflow.core.audit.chain import DAY_MS
from mendflow.core.model.audit import RequestRecord
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.services.audit.audit_log import AuditLog
from mendflow.services.audit.audit_retention import cut_before
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.audit")

CUT_EVERY_S: Final = 3600
CUT_OPERATION: Final = "cut_audit"


class AuditService:
    """`days`: how long entries are kept; 0: for ever."""

    def __init__(self, store: Store, server: Callable[[], str], now: Callable[[], Instant], days: int = 0) -> None:
        self.log = AuditLog(store, server, now)
        self._store, self._now, self._days = store, now, days
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.log.start()
        if self._days:
            self._task = asyncio.create_task(self._cut_now_and_then(), name="audit-retention")

    async def stop(self) -> None:
        await cancel_tasks(self._task)
        await self.log.stop()

    async def cut(self) -> None:
        """Remove what is too old, and put that on record."""
        for server, entries in (await cut_before(self._store, self._now() - self._days * DAY_MS)).items():
            told = f"{entries} entries of {server}, older than {self._days} days"
            await self.log.write(RequestRecord(who="", source="this server", operation=CUT_OPERATION, object=told))

    async def _cut_now_and_then(self) -> None:
        while True:
            try:
                await self.cut()
            except StoreUnavailable as error:
                log.warning("old entries of the audit log stay for now: %s", error.message)
            except Exception as error:  # what cannot be read in one chain must not end this for good
                log.error("old entries of the audit log stay for now", exc_info=error)
            await asyncio.sleep(CUT_EVERY_S)
