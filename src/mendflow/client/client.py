"""The Python SDK: one method for each thing that a domain can be asked, under the names that `Domain` has.

    async with Client("http://127.0.0.1:8642") as client:
        case = await client.start("align", {"sample": "A7"})
        case = await client.wait(case.id)

Every method raises the `RequestError` that the server raised, and `Unreachable` when there is none to answer."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

import msgspec

from mendflow.client.alerts import AlertCalls
from mendflow.client.data import DataCalls
from mendflow.client.data_sets import DataSetCalls
from mendflow.client.events import follow
from mendflow.client.files import content_of, digest_of, fetch, fetch_archive
from mendflow.client.repairs import RepairCalls
from mendflow.client.sites import SiteCalls
from mendflow.client.soap import SoapCalls
from mendflow.client.transport import STREAM_READ_S, Transport
from mendflow.core.model.errors import NotFound, StoreUnavailable, Unreachable
from mendflow.core.model.flow import Flow
from mendflow.core.model.repair_views import Explanation
from mendflow.core.model.stats import StatsView
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import (
    CasePage,
    CaseQuery,
    CaseView,
    ChangeEvent,
    ChangeKind,
    CountsView,
    FlowView,
    Health,
    ImportReport,
    ItemPage,
    ItemView,
    JobPage,
    JobQuery,
    JobView,
    LogView,
    PilotView,
    ServerView,
    UserTaskView,
)

ENDED = ("completed", "failed", "cancelled")

_encode_packed = msgspec.msgpack.Encoder()
_decode_packed = msgspec.msgpack.Decoder(SyncAnswer)


class Client(RepairCalls, AlertCalls, SiteCalls, DataCalls, DataSetCalls, SoapCalls):
    """A client of one server, or of several on one store: then `url` has all of them, with commas in between. Use it as
    an async context manager, or call `close` in the end."""

    def __init__(self, url: str, token: str = "", *, user: str = "", timeout_s: float = 60.0) -> None:
        """`user` is told to a server without tokens; empty means whoever runs this process."""
        self._transport = Transport(url, token, user=user, timeout_s=timeout_s)

    @property
    def url(self) -> str:
        return self._transport.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    # flows

    async def deploy(self, flow: Flow) -> FlowView:
        """Deploying the same flow twice is one version, so this is repeated when the line breaks."""
        return await self._transport.ask("POST", "/flows", FlowView, body=flow, repeatable=True)

    async def flows(self) -> list[FlowView]:
        return await self._transport.ask("GET", "/flows", list[FlowView])

    async def flow(self, name: str) -> FlowView:
        return await self._transport.ask("GET", f"/flows/{quote(name, safe='')}", FlowView)

    # cases; `case` may be the word "last"

    async def start(
        self,
        name: str,
        inputs: dict[str, Value] | None = None,
        *,
        cache_from: str = "",
        key: str = "",
        notify: str = "",
    ) -> CaseView:
        """Without a `key` one is made up, so that a repeated call after a broken line starts one case only."""
        body = {
            "flow": name,
            "inputs": inputs or {},
            "cache_from": cache_from,
            "key": key or uuid.uuid4().hex,
            "notify": notify,
        }
        return await self._transport.ask("POST", "/cases", CaseView, body=body, repeatable=True)

    async def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]:
        query: dict[str, str | int] = {"flow": flow, "status": status, "limit": limit, "offset": offset}
        return await self._transport.ask("GET", "/cases", list[CaseView], query=query)

    async def find_cases(self, query: CaseQuery) -> CasePage:
        """What fulfils the query's condition; the page's `next` is the `after` of the next query."""
        rows, place = await self._transport.page("/cases", list[CaseView], query=msgspec.structs.asdict(query))
        return CasePage(rows=rows, next=place)

    async def count_cases(self, query: CaseQuery | None = None, *, by: str = "") -> CountsView:
        """How many there are, by the value of a name. All of them are looked at, in as many steps as it takes."""
        return await self._count("/cases/count", query or CaseQuery(), by)

    async def case(self, case: str) -> CaseView:
        return await self._transport.ask("GET", _case(case), CaseView)

    async def flow_of(self, case: str) -> Flow:
        return await self._transport.ask("GET", f"{_case(case)}/flow", Flow)

    async def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        """In the order in which they last began; `after` is the `place` of the last item of the page before."""
        query: dict[str, str | int] = {"state": state, "name": name, "limit": limit, "offset": offset, "after": after}
        return await self._transport.ask("GET", f"{_case(case)}/items", list[ItemView], query=query)

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
        query: dict[str, str | int] = {"state": state, "name": name, "where": where}
        query |= {"limit": limit, "offset": offset, "after": after}
        rows, place = await self._transport.page(f"{_case(case)}/items", list[ItemView], query=query)
        return ItemPage(rows=rows, next=place)

    async def item(self, case: str, item: str) -> ItemView:
        return await self._transport.ask("GET", f"{_case(case)}/items/{quote(item, safe='')}", ItemView)

    async def why(self, subject: str) -> Explanation:
        return await self._transport.ask("GET", "/why", Explanation, query={"subject": subject})

    async def suspend(self, case: str, item: str = "") -> CaseView:
        return await self._transport.ask("POST", f"{_case(case)}/suspend", CaseView, body={"item": item})

    async def resume(self, case: str, item: str = "") -> CaseView:
        return await self._transport.ask("POST", f"{_case(case)}/resume", CaseView, body={"item": item})

    async def cancel(self, case: str, item: str = "", *, reason: str = "") -> CaseView:
        return await self._transport.ask(
            "POST", f"{_case(case)}/cancel", CaseView, body={"item": item, "reason": reason}
        )

    async def rerun(self, case: str, *, from_failed: bool = False) -> CaseView:
        return await self._transport.ask("POST", f"{_case(case)}/rerun", CaseView, body={"from_failed": from_failed})

    async def send(self, case: str, channel: str, value: Value, *, correlation: Value = None, id: str = "") -> CaseView:
        """Without an `id` one is made up, so that a repeated call after a broken line is one message only."""
        body = {"channel": channel, "value": value, "correlation": correlation, "id": id or uuid.uuid4().hex}
        return await self._transport.ask("POST", f"{_case(case)}/messages", CaseView, body=body, repeatable=True)

    def events(
        self, case: str = "", after: int = 0, *, kind: ChangeKind | Literal[""] = "", patience_s: float = 60.0
    ) -> AsyncIterator[ChangeEvent]:
        """Changes as they happen; ends with the case. A broken line is taken up again after the last serial seen;
        after `patience_s` without a server it raises `Unreachable`. Without a case: of all cases, from now on."""
        path = f"{_case(case)}/events" if case else "/events"
        return follow(self._transport, f"{path}?kind={kind}" if kind else path, after, patience_s)

    async def wait(self, case: str, *, timeout_s: float | None = None, patience_s: float = 60.0) -> CaseView:
        """The case when it is over. Raises TimeoutError after `timeout_s`; the case then goes on."""
        async with asyncio.timeout(timeout_s):
            view = await self.case(case)
            while view.status not in ENDED:
                async for _ in self.events(view.id, kind="case", patience_s=patience_s):
                    pass
                view = await self._case_with_patience(view.id, patience_s)
            return view

    async def _case_with_patience(self, case: str, patience_s: float) -> CaseView:
        give_up_at = time.monotonic() + patience_s
        while True:
            try:
                return await self.case(case)
            except (Unreachable, StoreUnavailable):
                if time.monotonic() >= give_up_at:
                    raise
                await asyncio.sleep(0.2)

    # jobs and pilots

    async def jobs(self, query: JobQuery | None = None) -> list[JobView]:
        return await self._transport.ask(
            "GET", "/jobs", list[JobView], query=msgspec.structs.asdict(query or JobQuery())
        )

    async def find_jobs(self, query: JobQuery) -> JobPage:
        """What fulfils the query's condition; the page's `next` is the `after` of the next query."""
        rows, place = await self._transport.page("/jobs", list[JobView], query=msgspec.structs.asdict(query))
        return JobPage(rows=rows, next=place)

    async def count_jobs(self, query: JobQuery | None = None, *, by: str = "") -> CountsView:
        """How many there are, by the value of a name. All of them are looked at, in as many steps as it takes."""
        return await self._count("/jobs/count", query or JobQuery(), by)

    async def _count(self, path: str, query: JobQuery | CaseQuery, by: str) -> CountsView:
        given = {
            name: value
            for name, value in msgspec.structs.asdict(query).items()
            if name not in ("limit", "offset", "order")
        }

        async def part(after: str) -> CountsView:
            return await self._transport.ask("GET", path, CountsView, query={**given, "by": by, "after": after})

        return await sum_counts(part, query.after)

    async def job(self, job: str) -> JobView:
        return await self._transport.ask("GET", f"/jobs/{_job_path(job)}", JobView)

    async def requeue(self, job: str, *, reason: str = "") -> JobView:
        """Take it from its pilot; it is given again when the attempt is certain to have ended."""
        return await self._transport.ask("POST", f"/jobs/{_job_path(job)}/requeue", JobView, body={"reason": reason})

    async def log(self, job: str, *, attempt: int = 0, offset: int = 0) -> LogView:
        """A part of what an attempt printed, from a byte on; of the last attempt unless one is given."""
        query = {"attempt": attempt, "offset": offset}
        return await self._transport.ask("GET", f"/jobs/{_job_path(job)}/log", LogView, query=query)

    async def pilots(self) -> list[PilotView]:
        return await self._transport.ask("GET", "/pilots", list[PilotView])

    async def servers(self) -> list[ServerView]:
        return await self._transport.ask("GET", "/servers", list[ServerView])

    async def stats(self, *, running: int = 0) -> list[StatsView]:
        """The living servers in numbers; with so many running jobs of each, those that run longest."""
        return await self._transport.ask("GET", "/stats", list[StatsView], query={"running": running})

    async def sync(self, request: SyncRequest) -> SyncAnswer:
        """A pilot's exchange, asked once: the pilot's next exchange says all that this one said."""
        headers = {"Content-Type": "application/vnd.msgpack"}
        body, timeout = _encode_packed.encode(request), self._transport.timeout_for(request.wait_ms / 1000)
        async with self._transport.open(
            "POST", "/pilots/sync", body=body, headers=headers, timeout=timeout
        ) as response:
            return _decode_packed.decode(await response.read())

    # a person's work

    async def worklist(
        self, *, role: str = "", state: str = "", case: str = "", limit: int = 100
    ) -> list[UserTaskView]:
        query: dict[str, str | int] = {"role": role, "state": state, "case": case, "limit": limit}
        return await self._transport.ask("GET", "/worklist", list[UserTaskView], query=query)

    async def user_task(self, task: str) -> UserTaskView:
        return await self._transport.ask("GET", f"/worklist/{_job_path(task)}", UserTaskView)

    async def claim(self, task: str) -> UserTaskView:
        return await self._transport.ask("POST", f"/worklist/{_job_path(task)}/claim", UserTaskView)

    async def release(self, task: str) -> UserTaskView:
        return await self._transport.ask("POST", f"/worklist/{_job_path(task)}/release", UserTaskView)

    async def complete(self, task: str, outputs: Value = None, *, comment: str = "") -> UserTaskView:
        body = {"outputs": outputs, "comment": comment}
        return await self._transport.ask("POST", f"/worklist/{_job_path(task)}/complete", UserTaskView, body=body)

    async def reject(self, task: str, *, comment: str = "") -> UserTaskView:
        return await self._transport.ask(
            "POST", f"/worklist/{_job_path(task)}/reject", UserTaskView, body={"comment": comment}
        )

    # stored files

    async def upload(self, path: str | Path, name: str = "") -> FileRef:
        """Upload a file to the server. What the server has already is not sent again."""
        source = Path(path)
        digest, size = await asyncio.to_thread(digest_of, source)
        ref = FileRef(sha256=digest, bytes=size, name=name or source.name)
        if await self.has(digest):
            return ref
        return await self._put(ref, source)

    async def has(self, sha256: str) -> bool:
        try:
            async with self._transport.open("HEAD", f"/files/{quote(sha256, safe='')}"):
                return True
        except NotFound:
            return False

    async def download(self, ref: FileRef | str, path: str | Path) -> Path:
        """Write a stored file to `path`: whole and with the right content, or not at all."""
        sha256 = ref if isinstance(ref, str) else ref.sha256
        return await fetch(self._transport, sha256, Path(path))

    async def _put(self, ref: FileRef, source: Path) -> FileRef:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(ref.bytes)}
        query: dict[str, str | int] = {"name": ref.name}
        async with self._transport.open(
            "PUT", f"/files/{ref.sha256}", query=query, body=content_of(source), headers=headers, read_s=STREAM_READ_S
        ) as response:
            return msgspec.json.decode(await response.read(), type=FileRef)

    # archives

    async def export(
        self,
        path: str | Path,
        cases: Sequence[str] = (),
        *,
        everything: bool = False,
        where: str = "",
        files: bool = True,
        leave_out_unreachable: bool = False,
    ) -> Path:
        """Write an archive of these cases, of those that a condition holds for, or of everything: whole, or not. Those
        whose server cannot be asked are an error, or left out: `client.files.left_out_of` tells which."""
        chosen = [f"case={quote(case, safe='')}" for case in cases]
        said = [
            f"everything={str(everything).lower()}",
            f"files={str(files).lower()}",
            f"where={quote(where, safe='')}",
            f"leave_out_unreachable={str(leave_out_unreachable).lower()}",
        ]
        return await fetch_archive(self._transport, "/archives?" + "&".join([*chosen, *said]), Path(path))

    async def import_archive(
        self, path: str | Path, *, as_new: bool = False, skip_existing: bool = False, resume: bool = False
    ) -> ImportReport:
        """Give the server an archive. Asked again after a broken line, it ends the same."""
        said = {"as_new": as_new, "skip_existing": skip_existing, "resume": resume}
        query: dict[str, str | int] = {name: str(value).lower() for name, value in said.items()}
        headers = {"Content-Type": "application/gzip"}
        async with self._transport.open(
            "POST", "/archives", query=query, body=content_of(Path(path)), headers=headers, read_s=STREAM_READ_S
        ) as response:
            return msgspec.json.decode(await response.read(), type=ImportReport)

    # the server

    async def health(self) -> Health:
        return await self._transport.ask("GET", "/health", Health)


async def sum_counts(part: Callable[[str], Awaitable[CountsView]], after: str) -> CountsView:
    """The sum of the parts, of which each says where the next one begins."""
    sums, looked_at, place = dict[str, int](), 0, after
    while True:
        counted = await part(place)
        for name, number in counted.counts.items():
            sums[name] = sums.get(name, 0) + number
        looked_at, place = looked_at + counted.looked_at, counted.next
        if not place:
            return CountsView(counts=sums, looked_at=looked_at)


def _case(case: str) -> str:
    return f"/cases/{quote(case, safe='')}"


def _job_path(id: str) -> str:
    case, serial = check_job_id(id)
    return f"{quote(case, safe='')}/{serial}"


def check_job_id(id: str) -> tuple[str, str]:
    """The case and the serial: only the last slash parts the two. A job that was submitted again has `~2` after it."""
    case, _, serial = id.rpartition("/")
    if not case or not serial.replace("~", "", 1).isdecimal():
        raise NotFound(f"{id!r} names no job or user task; such an id is CASE/NUMBER, for example align-7f3k/12", id=id)
    return case, serial
