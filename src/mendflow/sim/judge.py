"""Whether the laws held: at the end, over all that the disk knows and all that truly happened."""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from mendflow.core.engine import Case, evolve
from mendflow.core.engine.messages import Event, FinishItem
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job
from mendflow.core.scheduling import jobs as life
from mendflow.services.case_book import CASE_KIND, CaseDocument, journal_of
from mendflow.services.meta_scheduler import JOB_KIND
from mendflow.sim.chronicle import Chronicle
from mendflow.sim.disk import Disk
from mendflow.sim.servers import VirtualServer
from mendflow.sim.work import DrawnNature

_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode
_decode_event = msgspec.json.Decoder(Event).decode


class Court(Protocol):
    """What the judge looks at."""

    chronicle: Chronicle
    disk: Disk
    nature: DrawnNature
    servers: list[VirtualServer]
    acknowledged: dict[CaseId, str]


class Judge:
    def __init__(self, world: Court) -> None:
        self._world = world
        self._accuse = world.chronicle.accuse

    async def all_over(self) -> bool:
        """Whether every case that the disk knows has come to its end."""
        if any([document.live async for document in self._cases()]):
            return False
        return all(server.services is None or server.services.ledger.idle for server in self._world.servers)

    async def _cases(self) -> AsyncIterator[CaseDocument]:
        async for found in self._world.disk.truth.scan(CASE_KIND):
            yield _decode_case(found.body)

    async def look_at_the_end(self) -> None:
        known = {document.id: document async for document in self._cases()}
        for case in self._world.acknowledged:
            if case not in known:
                self._accuse("law 1", f"case {case} was acknowledged, and no disk knows of it")
        for document in known.values():
            await self._look_at_case(document)
        async for found in self._world.disk.truth.scan(JOB_KIND):
            self._look_at_job(_decode_job(found.body))

    async def _look_at_case(self, document: CaseDocument) -> None:
        case, finished = Case.blank(), set()
        for entry in await self._world.disk.truth.read(journal_of(document.id), 0, 1_000_000):
            event = _decode_event(entry)
            if isinstance(event.fact, FinishItem):
                if event.fact.serial in finished:
                    self._accuse("law 4", f"case {document.id}: item {event.fact.serial} was finished twice")
                finished.add(event.fact.serial)
            evolve(case, event)
        if document.live:
            self._accuse("liveness", f"case {document.id} has not ended: {document.status}")
        elif (case.status, case.ended_at) != (document.status, document.ended_at):
            what = f"its journal says {case.status} at {case.ended_at}, its document {document.status}"
            self._accuse("law 5", f"case {document.id}: {what}")
        elif document.status != "completed":
            self._accuse("law 7", f"case {document.id} ended {document.status}: {document.fault}")

    def _look_at_job(self, job: Job) -> None:
        life.validate(job)
        if not job.finished:
            self._accuse("liveness", f"job {job.id} has not ended: {job.state} under fence {job.fence}")
        bad = self._world.nature.bad_ends.get(job.id, 0)
        if job.failures > bad:
            self._accuse("law 7", f"job {job.id} is charged {job.failures} failures, and had {bad} of its own")
