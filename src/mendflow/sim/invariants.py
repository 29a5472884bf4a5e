"""Checks the invariants: at the end, against the disk and what really happened; and during the run, by looking into the
memory of servers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from mendflow.core.engine import Replay, snapshot
from mendflow.core.engine.messages import Event, FinishItem, StartCase
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job
from mendflow.core.scheduling import job_events
from mendflow.services.base.cluster import CASE_KIND, HOME_KIND, JOB_KIND, JOURNALS, HomeDocument, root_of
from mendflow.services.cases.live_case import CaseDocument, LiveCase, journal_of
from mendflow.sim.observer import Observer
from mendflow.sim.servers import VirtualServer
from mendflow.sim.virtual_store import VirtualStore
from mendflow.sim.workload import RandomOutcomes
from mendflow.stores.contract import Append, Delete, Put, Write

_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode
_decode_home = msgspec.json.Decoder(HomeDocument).decode
_decode_event = msgspec.json.Decoder(Event).decode

CHECK_EVERY_S = 4.0
"""How often to check the memory of servers."""


class CheckedWorld(Protocol):
    """What is checked."""

    observer: Observer
    store: VirtualStore
    outcomes: RandomOutcomes
    servers: list[VirtualServer]
    acknowledged: dict[CaseId, str]


class InvariantChecker:
    def __init__(self, world: CheckedWorld) -> None:
        self._world = world
        self._report_violation = world.observer.report_violation
        self._homes: dict[str, str] = {}

    async def all_ended(self) -> bool:
        """Whether every case on disk has ended."""
        if any([document.live and await self._began(document.id) async for document in self._cases()]):
            return False
        return all(server.runtime is None or server.runtime.ledger.idle for server in self._world.servers)

    async def _began(self, case: CaseId) -> bool:
        """Whether it ever started: a server that slept may leave the document of one that did not."""
        entries = await self._world.store.truth.read(journal_of(case), 0, 1)
        return bool(entries) and isinstance(_decode_event(entries[0]).fact, StartCase)

    async def _cases(self) -> AsyncIterator[CaseDocument]:
        async for found in self._world.store.truth.scan(CASE_KIND):
            yield _decode_case(found.body)

    # during the run

    def check_write(self, write: Write, by: str) -> None:
        """Only the current owner of a case may write to its journal, once it has taken the case over."""
        if isinstance(write, Put) and write.kind == HOME_KIND:
            servers = self._world.servers
            self._homes[write.id] = _decode_home(write.body).server if len(servers) > 1 else servers[0].name
        elif isinstance(write, Delete) and write.kind == HOME_KIND:
            self._homes.pop(write.id, None)
        elif isinstance(write, Append) and write.stream.startswith(JOURNALS):
            case = CaseId(write.stream.removeprefix(JOURNALS))
            home = self._homes.get(root_of(case), by)
            if home != by and self._is_home(home, case):
                self._report_violation("law 2", f"{by} writes to the journal of {case}, which {home} owns")

    def _is_home(self, server: str, case: CaseId) -> bool:
        runtime = next(each.runtime for each in self._world.servers if each.name == server)
        return runtime is not None and runtime.homes.mine(case)

    async def check_memory_periodically(self) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            for server in self._world.servers:
                runtime = server.runtime
                if runtime is not None and runtime.ledger.idle and not runtime.ledger.broken:
                    for live in list(runtime.manager.live.values()):
                        await self._check_memory(server.name, live)

    async def _check_memory(self, server: str, live: LiveCase) -> None:
        """What an idle owner has in memory must follow from the journal."""
        if self._homes.get(root_of(live.id)) != server or not self._is_home(server, live.id):
            return
        entries = await self._world.store.truth.read(journal_of(live.id), 0, 1_000_000)
        replay = Replay()
        for entry in entries:
            replay.take(_decode_event(entry))
        case = replay.case
        if len(entries) != live.position:
            what = f"{server} has {live.position} of the {len(entries)} entries in memory"
            self._report_violation("law 5", f"case {live.id}: {what}")
        elif snapshot(case) != snapshot(live.case):
            self._report_violation("law 5", f"case {live.id}: its journal does not give what {server} has in memory")

    # at the end

    async def check_at_end(self) -> None:
        known = {document.id: document async for document in self._cases()}
        for case in self._world.acknowledged:
            if case not in known:
                self._report_violation("law 1", f"case {case} was acknowledged, and no disk knows of it")
        for document in known.values():
            await self._check_case(document)
        async for found in self._world.store.truth.scan(JOB_KIND):
            self._check_job(_decode_job(found.body))

    async def _check_case(self, document: CaseDocument) -> None:
        replay, finished = Replay(), set()
        for entry in await self._world.store.truth.read(journal_of(document.id), 0, 1_000_000):
            event = _decode_event(entry)
            if isinstance(event.fact, FinishItem):
                if event.fact.serial in finished:
                    self._report_violation("law 4", f"case {document.id}: item {event.fact.serial} was finished twice")
                finished.add(event.fact.serial)
            replay.take(event)
        case = replay.case
        if case.flow is None or document.void:
            if document.id in self._world.acknowledged:
                self._report_violation("law 1", f"case {document.id} was acknowledged, and never began")
        elif document.live:
            self._report_violation("liveness", f"case {document.id} has not ended: {document.status}")
        elif (case.status, case.ended_at) != (document.status, document.ended_at):
            what = f"its journal says {case.status} at {case.ended_at}, its document {document.status}"
            self._report_violation("law 5", f"case {document.id}: {what}")
        elif document.status != "completed":
            self._report_violation("law 7", f"case {document.id} ended {document.status}: {document.fault}")

    def _check_job(self, job: Job) -> None:
        job_events.validate(job)
        if not job.finished:
            self._report_violation("liveness", f"job {job.id} has not ended: {job.state} under fence {job.fence}")
        bad = self._world.outcomes.bad_ends.get(job.id, 0)
        if job.failures > bad:
            self._report_violation(
                "law 7", f"job {job.id} is charged {job.failures} failures, and had {bad} of its own"
            )
