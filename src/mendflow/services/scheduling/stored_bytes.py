"""How many bytes the stored files of a project take, where it has a quota for them.

They are counted from what the documents of its cases name, by one of the servers, every ten minutes. What jobs leave in
between is added at once by the server that they ran under, and counted properly the next time."""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job
from mendflow.core.model.named_limits import LimitDocument
from mendflow.core.model.projects import quota_name
from mendflow.services.base.cluster import Membership
from mendflow.services.base.contracts import Clock
from mendflow.services.scheduling.limit_service import LimitService
from mendflow.services.scheduling.quota_holds import SERVER_MARK, hold_of

COUNT_EVERY_MS: Final = 600_000
COUNTED: Final = JobId(f"{SERVER_MARK}stored")
NEW: Final = f"{SERVER_MARK}new:"
"""Before the name of a server: what its jobs have left since the last count."""


class StoredBytes:
    def __init__(
        self,
        limits: LimitService,
        clock: Clock,
        membership: Membership,
        count_bytes: Callable[[str], Awaitable[int]],
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._membership = membership
        self._count_bytes = count_bytes
        self._new: dict[str, int] = {}

    def job_ended(self, job: Job) -> None:
        project, outcome = job.spec.project, job.outcome
        if outcome is None or "stored-bytes" not in self._limits.kinds.get(project, ()):
            return
        files = [*outcome.files.values(), *(each for many in outcome.file_lists.values() for each in many)]
        left = sum(file.bytes for file in files if not file.logical)
        if left:
            self._new[project] = self._new.get(project, 0) + left

    async def look(self) -> None:
        for project, kinds in list(self._limits.kinds.items()):
            if "stored-bytes" in kinds:
                await self._add_new(project)
                await self._count(project)

    async def _add_new(self, project: str) -> None:
        added = self._new.get(project, 0)
        if added:
            id = JobId(f"{NEW}{self._membership.id}")

            def changed(document: LimitDocument) -> LimitDocument:
                held = document.holds.get(id)
                amount = added + (held.amount if held is not None else 0)
                return _with(document, id, amount, self._limits, self._clock.now())

            await self._limits.change_quota(quota_name(project, "stored-bytes"), changed)
            self._new[project] -= added  # not before it is written: otherwise the next look tries again

    async def _count(self, project: str) -> None:
        """Count anew, if that is due and no other server does."""
        name, now = quota_name(project, "stored-bytes"), self._clock.now()

        def claimed(document: LimitDocument) -> LimitDocument:
            held = document.holds.get(COUNTED)
            if held is not None and now - held.since < COUNT_EVERY_MS:
                return document
            return _with(document, COUNTED, held.amount if held is not None else 0, self._limits, now)

        held = (await self._limits.change_quota(name, claimed)).holds.get(COUNTED)
        if held is None or (held.since, held.server) != (now, self._membership.id):
            return
        stored = await self._count_bytes(project)

        def counted(document: LimitDocument) -> LimitDocument:
            """What was added after the count began may not be in it."""
            holds = document.holds.items()
            kept = {id: hold for id, hold in holds if not id.startswith(NEW) or hold.since > now}
            return _with(replace(document, holds=kept), COUNTED, stored, self._limits, now)

        await self._limits.change_quota(name, counted)


def _with(document: LimitDocument, id: JobId, amount: int, limits: LimitService, now: Instant) -> LimitDocument:
    return replace(document, holds={**document.holds, id: hold_of(limits.grantor(), amount, 0, now)}, freed_at=now)
