"""The Python SDK: one method for each thing that a domain can be asked, under the names that `Domain` has.

    async with Client("http://127.0.0.1:8642") as client:
        case = await client.start("align", {"sample": "A7"})
        case = await client.wait(case.id)

Every method raises the `RequestError` that the server raised, and `Unreachable` when there is none to answer. The calls
of the table of operations are inherited; here stand those that are made of several, and those that stream."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

import msgspec

from mendflow.client.events import follow
from mendflow.client.files import content_of, fetch, fetch_archive, reference_of
from mendflow.client.soap import SoapCalls
from mendflow.client.transport import STREAM_READ_S, Transport
from mendflow.core.model.alerts import Notification
from mendflow.core.model.engine_views import EventAnswer
from mendflow.core.model.errors import NotFound, StoreUnavailable, Unreachable
from mendflow.core.model.ids import ONE_REQUEST
from mendflow.core.model.import_reports import ImportReport
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import (
    CASE_END_STATES,
    CaseQuery,
    CaseView,
    ChangeEvent,
    ChangeKind,
    CountsView,
    ItemView,
    JobQuery,
    JobView,
)
from mendflow.operations.operation import ApiOperation
from mendflow.operations.table import DomainCalls

if TYPE_CHECKING:
    from mendflow.tls import ClientTls

FOLLOW_EVERY_S = 1.0

_encode_packed = msgspec.msgpack.Encoder()
_decode_packed = msgspec.msgpack.Decoder(SyncAnswer)


PROJECT_VARIABLE = "MENDFLOW_PROJECT"
PROJECT = "project"


class Client(DomainCalls, SoapCalls):
    """A client of one server, or of several on one store: then `url` has all of them, with commas in between. Use it as
    an async context manager, or call `close` in the end."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        user: str = "",
        timeout_s: float = 60.0,
        project: str | None = None,
        tls: "ClientTls | None" = None,
    ) -> None:
        """`user` is told to a server without tokens; empty means whoever runs this process. What is new belongs to
        `project`, unless a call says otherwise; without one, to that of MENDFLOW_PROJECT, else the server chooses.
        `tls` says which servers are trusted; what it does not say, the environment does."""
        self._project = os.environ.get(PROJECT_VARIABLE, "") if project is None else project
        self._transport = Transport(url, token, user=user, timeout_s=timeout_s, tls=tls)

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

    async def _ask(self, operation: ApiOperation, arguments: dict[str, Any]) -> Any:
        """Where a repeated request is known by a key, one is made up: so nothing is done twice over a broken line."""
        for key in operation.idempotency_keys:
            arguments[key] = arguments[key] or f"{ONE_REQUEST}{uuid.uuid4().hex}"
        if PROJECT in arguments:
            arguments[PROJECT] = arguments[PROJECT] or self._project
        path, query, body = operation.request(arguments)
        if operation.rows is not None:
            rows, place = await self._transport.page(path, operation.rows, query=query)
            return operation.result(rows=rows, next=place)
        return await self._transport.ask(
            operation.method,
            path,
            operation.result,
            query=query,
            body=body,
            repeatable=operation.repeatable,
            held_s=arguments.get(operation.waits, 0) / 1000,
        )

    # lists, and numbers that come in parts

    async def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]:
        """The newest first. All of them are looked at, in as many steps as it takes."""
        query = CaseQuery(flow=flow, status=status, limit=limit, offset=offset)
        return await _all_rows(self.find_cases, query)

    async def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        """In the order in which they last began; `after` is the `place` of the last item of the page before. All of
        them are looked at, in as many steps as it takes."""
        rows = list[ItemView]()
        while True:
            missing = limit - len(rows)
            page = await self.find_items(case, state=state, name=name, limit=missing, offset=offset, after=after)
            rows += page.rows
            if not page.next or len(rows) >= limit:
                return rows
            offset, after = 0, page.next

    async def jobs(self, query: JobQuery = JobQuery()) -> list[JobView]:
        """The newest first. All of them are looked at, in as many steps as it takes; `find_jobs` gives a page."""
        return await _all_rows(self.find_jobs, query)

    async def count_cases(self, query: CaseQuery = CaseQuery(), *, by: str = "") -> CountsView:
        """How many there are, by the value of a name. All of them are looked at, in as many steps as it takes."""
        count = super().count_cases
        return await sum_counts(lambda after: count(msgspec.structs.replace(query, after=after), by=by), query.after)

    async def count_jobs(self, query: JobQuery = JobQuery(), *, by: str = "") -> CountsView:
        """How many there are, by the value of a name. All of them are looked at, in as many steps as it takes."""
        count = super().count_jobs
        return await sum_counts(lambda after: count(msgspec.structs.replace(query, after=after), by=by), query.after)

    async def engine_event(self, engine: str, event: ExceptionEvent) -> EventAnswer:
        """The same id is the same event; an event without one gets one here."""
        return await super().engine_event(
            engine, event if event.id else msgspec.structs.replace(event, id=uuid.uuid4().hex)
        )

    # what happens

    def events(
        self, case: str = "", after: int = 0, *, kind: ChangeKind | Literal[""] = "", patience_s: float = 60.0
    ) -> AsyncGenerator[ChangeEvent, None]:
        """Changes as they happen; ends with the case. A broken line is taken up again after the last serial seen;
        after `patience_s` without a server it raises `Unreachable`. Without a case: of all cases, from now on."""
        path = f"{_case(case)}/events" if case else "/events"
        return follow(self._transport, f"{path}?kind={kind}" if kind else path, after, patience_s)

    async def wait(self, case: str, *, timeout_s: float | None = None, patience_s: float = 60.0) -> CaseView:
        """The case when it is over. Raises TimeoutError after `timeout_s`; the case then goes on."""
        async with asyncio.timeout(timeout_s):
            view = await self.case(case)
            while view.status not in CASE_END_STATES:
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

    async def follow_notifications(self, after: int) -> AsyncGenerator[Notification, None]:
        """Those after a serial, and then as they come."""
        while True:
            found = await self.notifications(after=after)
            for told in found:
                after = told.serial
                yield told
            if not found:
                await asyncio.sleep(FOLLOW_EVERY_S)

    async def sync(self, request: SyncRequest) -> SyncAnswer:
        """A pilot's exchange, asked once: the pilot's next exchange says all that this one said."""
        headers = {"Content-Type": "application/vnd.msgpack"}
        body, timeout = _encode_packed.encode(request), self._transport.timeout_for(request.wait_ms / 1000)
        async with self._transport.open(
            "POST", "/pilots/sync", body=body, headers=headers, timeout=timeout
        ) as response:
            return _decode_packed.decode(await response.read())

    async def xes(self, case: str = "", *, flow: str = "", limit: int = 1000) -> str:
        """The history of a case, or of the newest cases of a flow, as an XES log."""
        path = f"{_case(case)}/history" if case else f"/flows/{quote(flow, safe='')}/history"
        query: dict[str, str | int] = {"format": "xes"} if case else {"limit": limit}
        async with self._transport.open("GET", path, query=query, read_s=STREAM_READ_S) as response:
            return (await response.read()).decode()

    # stored files

    async def upload(self, path: str | Path, name: str = "") -> FileRef:
        """Upload a file to the server. What the server has already is not sent again."""
        source = Path(path)
        ref = await asyncio.to_thread(reference_of, source, name)
        if not await self.has(ref.sha256):
            await self._put(ref, source)
        return ref

    async def has(self, sha256: str, *, of: str = "") -> bool:
        """Whether it is stored, and you may read it: because you sent it, or because a case refers to it that you can
        read. `of` names that."""
        query: dict[str, str | int] = {"of": of} if of else {}
        try:
            async with self._transport.open("HEAD", f"/files/{quote(sha256, safe='')}", query=query):
                return True
        except NotFound:
            return False

    async def download(self, ref: FileRef | str, path: str | Path, *, of: str = "") -> Path:
        """Write a stored file to `path`: whole and with the right content, or not at all. `of` is a case that refers to
        it; only administrators, and whoever has sent the file, need not name one."""
        known = ref if isinstance(ref, FileRef) else FileRef(sha256=ref, bytes=0, name="")
        return await fetch(self._transport, known, Path(path), of)

    async def _put(self, ref: FileRef, source: Path) -> None:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(ref.bytes)}
        query: dict[str, str | int] = {"name": ref.name}
        async with self._transport.open(
            "PUT", f"/files/{ref.sha256}", query=query, body=content_of(source), headers=headers, read_s=STREAM_READ_S
        ) as response:
            await response.read()

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
        whose server cannot be asked are an error, or left out: `client.files.omitted_cases` tells which."""
        chosen = [f"case={quote(case, safe='')}" for case in cases]
        said = [
            f"everything={str(everything).lower()}",
            f"files={str(files).lower()}",
            f"where={quote(where, safe='')}",
            f"leave_out_unreachable={str(leave_out_unreachable).lower()}",
        ]
        return await fetch_archive(self._transport, "/archives?" + "&".join([*chosen, *said]), Path(path))

    async def export_audit(self, path: str | Path, *, since: int = 0, until: int = 0) -> Path:
        """Write the entries of the audit log between two moments, in milliseconds since 1970, one in each line; 0 is
        the beginning, and now."""
        return await fetch_archive(self._transport, f"/audit/export?since={since}&until={until}", Path(path))

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


async def _all_rows(find: Callable[[Any], Awaitable[Any]], query: CaseQuery | JobQuery) -> list[Any]:
    """As many rows as the query wants, page after page: one may be short because its search has looked at enough."""
    rows, limit = list[Any](), query.limit
    while True:
        page = await find(query)
        rows += page.rows
        if not page.next or len(rows) >= limit:
            return rows
        query = msgspec.structs.replace(query, limit=limit - len(rows), offset=0, after=page.next)
