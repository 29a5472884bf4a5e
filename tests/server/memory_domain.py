"""A domain in memory, small enough to read at once: it runs flows of jobs and tasks with no engine and no store.

It is here so that the HTTP face can be proved alone. It knows sequences, parallels and for-eachs over plain lists,
all at once; the case is over when every leaf is."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec

from mendflow.core.model import flow as model
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome
from mendflow.core.model.problems import Conflict, Invalid, NotFound
from mendflow.core.model.repair_views import Explanation
from mendflow.core.model.stats import HistogramView, StatsView
from mendflow.core.model.sync import Assignment, AttemptRef, SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import (
    CasePage,
    CaseQuery,
    CaseView,
    Counts,
    FlowView,
    Happening,
    Health,
    ImportReport,
    ItemPage,
    ItemView,
    JobPage,
    JobQuery,
    PilotView,
    ServerView,
    TaskView,
)
from mendflow.services.cases.flows import check_names
from tests.server.memory_data import MemoryData
from tests.server.memory_repairs import MemoryRepairs
from tests.server.memory_sets import MemorySets
from tests.server.memory_sites import MemorySites
from tests.server.memory_watch import MemoryWatch

NOW = 1_700_000_000_000


def leaves(activity: model.Activity, turn: str = "") -> Iterator[tuple[str, model.Job | model.Task]]:
    if isinstance(activity, model.Job | model.Task):
        yield activity.name + turn, activity
    for part in getattr(activity, "branches", ()) or (activity.body if isinstance(activity, model.Sequence) else ()):
        yield from leaves(part, turn)
    if isinstance(activity, model.ForEach):
        for index in range(len(activity.items)):
            yield from leaves(activity.body, f"[{index}]")


class MemoryDomain(MemoryRepairs, MemoryWatch, MemorySites, MemoryData, MemorySets):
    def __init__(self) -> None:
        super().__init__()
        MemoryWatch.__init__(self)
        MemoryData.__init__(self)
        self._flows: dict[str, FlowView] = {}
        self._cases: dict[str, CaseView] = {}
        self._items: dict[str, dict[str, ItemView]] = {}
        self._happened: dict[str, list[Happening]] = {}
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, TaskView] = {}
        self._files: dict[str, bytes] = {}
        self._pilots: dict[str, PilotView] = {}
        self._keys: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._let_go = 0

    # flows

    async def deploy(self, flow: Flow) -> FlowView:
        check_names(flow)
        digest = hashlib.sha256(msgspec.json.encode(flow)).hexdigest()
        known = self._flows.get(flow.name)
        if known is None or known.digest != digest:
            version = 1 if known is None else known.version + 1
            known = FlowView(name=flow.name, digest=digest, version=version, deployed_at=NOW, flow=flow)
            self._flows[flow.name] = known
        return msgspec.structs.replace(known, flow=None)

    async def flows(self) -> list[FlowView]:
        return [msgspec.structs.replace(flow, flow=None) for flow in self._flows.values()]

    async def flow(self, name: str) -> FlowView:
        if name not in self._flows:
            raise NotFound(f"there is no flow {name!r}; deploy it first", flow=name)
        return self._flows[name]

    async def flow_of(self, case: str) -> Flow:
        flow = (await self.flow((await self.case(case)).flow)).flow
        assert flow is not None
        return flow

    # cases

    async def start(
        self, name: str, inputs: dict[str, Value], *, who: str, reuse: str = "", key: str = "", notify: str = ""
    ) -> CaseView:
        deployed = await self.flow(name)
        if key and key in self._keys:
            return self._cases[self._keys[key]]
        assert deployed.flow is not None
        id = CaseId(f"{name}-{len(self._cases) + 1}")
        self._keys[key] = id
        self._happened[id], self._items[id] = [], {}
        self._cases[id] = CaseView(
            id=id, flow=name, digest=deployed.digest, status="running", started_at=NOW, inputs=inputs, owner=who
        )
        self._tell(id, "case", "running")
        for serial, (item, activity) in enumerate(leaves(deployed.flow.body), 1):
            self._offer(id, ItemId(item), serial, activity)
        return self._cases[id]

    def _offer(self, case: CaseId, item: ItemId, serial: int, activity: model.Job | model.Task) -> None:
        id = JobId(f"{case}/{serial}")
        is_job = isinstance(activity, model.Job)
        self._items[case][item] = ItemView(
            case=case,
            item=item,
            name=activity.name,
            kind="job" if is_job else "task",
            serial=serial,
            state="waiting",
            job=id if is_job else None,
        )
        if isinstance(activity, model.Job):
            self._jobs[id] = Job(id=id, case=case, spec=JobSpec(item=item, command=activity.command))
        else:
            self._tasks[id] = TaskView(
                id=id,
                case=case,
                item=item,
                role=activity.role,
                title=str(activity.title),
                description="",
                data=activity.data,
                fields=activity.fields,
                state="offered",
                offered_at=NOW,
            )
        self._tell(case, "item", "waiting", item)

    async def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]:
        found = [c for c in self._cases.values() if flow in ("", c.flow) and status in ("", c.status)]
        return found[::-1][offset : offset + limit]

    async def case(self, case: str) -> CaseView:
        id = next(reversed(self._cases), "") if case == "last" else case
        if id not in self._cases:
            raise NotFound(f"there is no case {case!r}; `mendflow cases` lists them", case=case)
        return self._cases[id]

    async def find_cases(self, query: CaseQuery) -> CasePage:
        rows = await self.cases(flow=query.flow, status=query.status, limit=query.limit, offset=query.offset)
        return CasePage(rows=rows)

    async def count_cases(self, query: CaseQuery, *, by: str = "") -> Counts:
        return Counts(counts={"": len((await self.find_cases(query)).rows)})

    async def find_items(
        self,
        case: str,
        *,
        state: str = "",
        name: str = "",
        where: str = "",
        limit: int = 1000,
        offset: int = 0,
        after: str = "",
    ) -> ItemPage:
        rows = await self.items(case, state=state, name=name, limit=limit, offset=offset, after=after)
        return ItemPage(rows=rows)

    async def export(
        self,
        cases: Sequence[str],
        *,
        everything: bool = False,
        where: str = "",
        files: bool = True,
        leave_out: bool = False,
        who: str,
    ) -> AsyncIterator[bytes]:
        found = [(await self.case(case)).id for case in cases]
        return self._archived(found)

    async def _archived(self, cases: list[CaseId]) -> AsyncIterator[bytes]:
        for case in cases:
            yield case.encode()

    async def import_archive(
        self,
        chunks: AsyncIterator[bytes],
        *,
        as_new: bool = False,
        skip_existing: bool = False,
        resume: bool = False,
        who: str,
    ) -> ImportReport:
        content = b"".join([chunk async for chunk in chunks])
        return ImportReport(imported=[CaseId(content.decode(errors="replace"))])

    async def find_jobs(self, query: JobQuery) -> JobPage:
        return JobPage(rows=await self.jobs(query))

    async def count_jobs(self, query: JobQuery, *, by: str = "") -> Counts:
        return Counts(counts={"": len(await self.jobs(query))})

    async def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        found = list(self._items[(await self.case(case)).id].values())
        first = next((number for number, i in enumerate(found, 1) if after and i.place == after), 0)
        return [i for i in found[first:] if state in ("", i.state) and name in ("", i.name)][offset : offset + limit]

    async def item(self, case: str, item: str) -> ItemView:
        found = self._items[(await self.case(case)).id].get(item)
        if found is None:
            raise NotFound(f"case {case} has no item {item!r}", item=item)
        return found

    async def why(self, subject: str) -> Explanation:
        view = await self.case(subject)
        return Explanation(
            subject=view.id, state=view.status, sentence=f"{view.id} is {view.status}", facts=["no pilot"]
        )

    async def _set(self, case: str, before: str, after: str) -> CaseView:
        view = await self.case(case)
        if view.status != before:
            raise Conflict(f"case {view.id} is {view.status}, not {before}", status=view.status)
        changed = msgspec.structs.replace(view, status=after)
        self._cases[view.id] = changed
        self._tell(view.id, "case", after)
        return changed

    async def suspend(self, case: str, item: str = "", *, who: str) -> CaseView:
        return await self._set(case, "running", "suspended")

    async def resume(self, case: str, item: str = "", *, who: str) -> CaseView:
        return await self._set(case, "suspended", "running")

    async def remove(self, case: str, item: str = "", *, who: str, reason: str = "") -> CaseView:
        return await self._set(case, "running", "cancelled")

    async def rerun(self, case: str, *, who: str, from_failed: bool = False) -> CaseView:
        view = await self.case(case)
        if from_failed and view.status != "failed":
            raise Conflict(f"nothing failed in case {view.id}; run it again without --from-failed")
        again = await self.start(view.flow, view.inputs, who=who, reuse=view.id)
        self._cases[again.id] = msgspec.structs.replace(again, rerun_of=view.id)
        return self._cases[again.id]

    async def send(self, case: str, channel: str, value: Value, *, correlation: Value = None, id: str = "") -> CaseView:
        view = await self.case(case)
        self._tell(view.id, "notice", "message", message=f"{channel}: {value!r}")
        return view

    async def happenings(self, case: str = "", after: int = 0, *, kind: str = "") -> AsyncIterator[Happening]:
        told = {id: len(seen) for id, seen in self._happened.items()} if not case else {case: after}
        while True:
            changed = self._changed
            for id in [case] if case else list(self._happened):
                for happening in self._happened[id][told.get(id, 0) :]:
                    told[id] = happening.serial
                    if kind in ("", happening.kind):
                        yield happening
            if case and self._cases[case].status in ("completed", "failed", "cancelled"):
                return
            if changed is self._changed:
                await changed.wait()

    def _tell(self, case: CaseId, kind: str, state: str, item: ItemId | None = None, message: str = "") -> None:
        serial = len(self._happened[case]) + 1
        told = {"serial": serial, "at": NOW, "kind": kind, "case": case, "item": item, "state": state}
        self._happened[case].append(msgspec.convert({**told, "message": message}, Happening))
        self._changed.set()
        self._changed = asyncio.Event()

    def _end(self, case: CaseId, item: ItemId, fault: Fault | None) -> None:
        state = "failed" if fault else "completed"
        self._items[case][item] = msgspec.structs.replace(self._items[case][item], state=state, fault=fault)
        self._tell(case, "item", state, item)
        states = {one.state for one in self._items[case].values()}
        if states <= {"completed", "failed"}:
            status = "failed" if "failed" in states else "completed"
            self._cases[case] = msgspec.structs.replace(self._cases[case], status=status, ended_at=NOW, fault=fault)
            self._tell(case, "case", status)

    # jobs and pilots

    async def jobs(self, query: JobQuery) -> list[Job]:
        found = [j for j in self._jobs.values() if query.case in ("", j.case) and query.state in ("", j.state)]
        return found[query.offset : query.offset + query.limit]

    async def job(self, job: str) -> Job:
        if job not in self._jobs:
            raise NotFound(f"there is no job {job!r}", job=job)
        return self._jobs[job]

    async def log(self, job: str) -> str:
        outcome = (await self.job(job)).outcome
        return outcome.log_tail if outcome else ""

    async def pilots(self) -> list[PilotView]:
        return list(self._pilots.values())

    async def servers(self) -> list[ServerView]:
        return []

    async def stats(self, *, running: int = 0, everywhere: bool = True) -> list[StatsView]:
        none = HistogramView(bounds=[1.0], counts=[0, 0])
        stats = StatsView(
            server="memory",
            version="0",
            store="memory",
            at=1,
            uptime_ms=1,
            store_up=True,
            store_away_s=0.0,
            servers_alive=1,
            queue_s=none,
            start_s=none,
            known_s=none,
            run_s=none,
            ledger_writes=none,
            ledger_s=none,
        )
        return [stats]

    def let_go(self, pilot: str | None) -> None:
        self._let_go += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def sync(self, request: SyncRequest, *, who: str = "") -> SyncAnswer:
        self._pilots[request.pilot] = PilotView(
            id=request.pilot,
            host=request.host,
            site=request.site,
            capacity=request.capacity,
            free_slots=request.want,
            running=[],
            state="active",
            seen_ms_ago=0,
            lease_ms_left=30_000,
        )
        for report in request.reports:
            self._finish(self._jobs[report.job], report.outcome)
        accepted = [AttemptRef(report.job, report.fence) for report in request.reports]
        jobs, held = self._granted(request.want), self._let_go
        end = asyncio.get_running_loop().time() + request.wait_ms / 1000
        while not jobs and not accepted and held == self._let_go and asyncio.get_running_loop().time() < end:
            try:
                async with asyncio.timeout_at(end):
                    await self._changed.wait()
            except TimeoutError:
                break
            jobs = self._granted(request.want) if held == self._let_go else []
        return SyncAnswer(serial=request.serial, lease_ms=30_000, jobs=jobs, accepted=accepted)

    def _granted(self, want: int) -> list[Assignment]:
        waiting = [job for job in self._jobs.values() if job.state is JobState.AVAILABLE][:want]
        for job in waiting:
            job.state, job.fence = JobState.RUNNING, job.fence + 1
        return [Assignment(job.id, job.fence, job.spec) for job in waiting]

    def _finish(self, job: Job, outcome: Outcome) -> None:
        job.state, job.outcome = (JobState.COMPLETED if outcome.ok else JobState.FAILED), outcome
        self._end(job.case, job.spec.item, outcome.fault)

    # tasks

    async def tasks(self, *, role: str = "", state: str = "", case: str = "", limit: int = 100) -> list[TaskView]:
        return [t for t in self._tasks.values() if role in ("", t.role) and state in ("", t.state)][:limit]

    async def task(self, task: str) -> TaskView:
        if task not in self._tasks:
            raise NotFound(f"there is no task {task!r}", task=task)
        return self._tasks[task]

    async def _change(self, task: str, **fields: object) -> TaskView:
        self._tasks[task] = msgspec.structs.replace(await self.task(task), **fields)
        return self._tasks[task]

    async def claim(self, task: str, *, who: str) -> TaskView:
        held_by = (await self.task(task)).claimed_by
        if held_by not in ("", who):
            raise Conflict(f"task {task} is claimed by {held_by}", claimed_by=held_by)
        return await self._change(task, state="claimed", claimed_by=who)

    async def release(self, task: str, *, who: str) -> TaskView:
        return await self._change(task, state="offered", claimed_by="")

    async def complete(self, task: str, outputs: Value, *, who: str, comment: str = "") -> TaskView:
        view = await self._change(task, state="completed", ended_by=who, outputs=outputs, comment=comment)
        self._end(view.case, view.item, None)
        return view

    async def reject(self, task: str, *, who: str, comment: str = "") -> TaskView:
        view = await self._change(task, state="rejected", ended_by=who, comment=comment)
        self._end(view.case, view.item, Fault(name="rejected", category=Category.FLOW, message=comment))
        return view

    # files

    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        content = b"".join([chunk async for chunk in chunks])
        digest = hashlib.sha256(content).hexdigest()
        if sha256 not in ("", digest):
            raise Invalid("the content does not have the given SHA-256; send it again", sha256=digest)
        self._files[digest] = content
        return FileRef(sha256=digest, bytes=len(content), name=name)

    async def kept(self, sha256: str) -> AsyncIterator[bytes]:
        for start in range(0, len(self._files[sha256]), 65_536):
            yield self._files[sha256][start : start + 65_536]

    async def kept_size(self, sha256: str) -> int:
        if sha256 not in self._files:
            raise NotFound(f"no file {sha256[:12]} is kept here", sha256=sha256)
        return len(self._files[sha256])

    async def notices(self, limit: int = 100) -> list[Happening]:
        return [one for seen in self._happened.values() for one in seen if one.kind == "notice"][:limit]

    async def health(self) -> Health:
        live = sum(case.status == "running" for case in self._cases.values())
        return Health(
            status="ok",
            version="0",
            uptime_ms=1,
            store="memory",
            cases_live=live,
            jobs_waiting=0,
            jobs_running=0,
            pilots=len(self._pilots),
        )
