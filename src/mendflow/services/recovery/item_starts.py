"""When an item began: its job was submitted, its user task offered, its call started.

The engine has no clock, so it does not know. The service that carried out the order recorded the time, under the item's
serial: it is read from memory while the item is under way, else from the store."""

import msgspec

from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.repair import ExceptionEvent
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store


class _StartDocument(msgspec.Struct):
    """The fields of a job or a user task that are read."""

    created_at: Instant = 0
    offered_at: Instant = 0


_decode = msgspec.json.Decoder(_StartDocument).decode


class ItemStartTimes:
    def __init__(self, store: Store, manager: FlowManager, meta: PilotScheduler) -> None:
        self._store = store
        self._manager = manager
        self._meta = meta

    async def of(self, event: ExceptionEvent, kind: str) -> Instant:
        """When the item of an exception last began; 0 if that is unknown, or it has not."""
        if not event.serial or event.engine:
            return 0
        id = f"{event.case}/{event.serial}"
        if kind == "call":
            called = await self._manager.document(CaseId(f"{event.case}.{event.serial}"))
            return called.started_at if called is not None else 0
        if kind == "job" and (job := self._meta.jobs.get(JobId(id))) is not None:
            return job.created_at
        found = await self._store.get(TASK_KIND if kind == "user-task" else JOB_KIND, id)
        begun = _decode(found.body) if found is not None else _StartDocument()
        return begun.created_at or begun.offered_at
