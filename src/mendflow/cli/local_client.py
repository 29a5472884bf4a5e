"""The client of an embedded server: the calls of `Client`, answered by the domain without HTTP.

Most calls have the name and parameters of the domain's own and are passed on, with the caller. Arguments and results go
through JSON as over HTTP, so a command sees the same values with either client."""

import asyncio
import getpass
import inspect
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from mendflow.client.client import ENDED, Client, check_job_id, sum_counts
from mendflow.client.files import content_of, reference_of, write_archive, write_file
from mendflow.core.data.paths import logical_name
from mendflow.core.model.errors import InvalidRequest, NotFound, TemporarilyUnavailable
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.repair_views import (
    CompensationView,
    DecisionQuery,
    DecisionView,
    EngineOrder,
    EventAnswer,
)
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import (
    CaseQuery,
    ChangeEvent,
    ChangeKind,
    CountsView,
    ImportReport,
    JobQuery,
    JobView,
)
from mendflow.lazy import LazyModule
from mendflow.services.api.domain import Domain

if TYPE_CHECKING:
    from mendflow.formats import xes
else:
    xes = LazyModule("mendflow.formats.xes")

NOT_NOW_WAIT_S = 0.3
NOT_NOW_S_MAX = 60.0
QUERIES = (CaseQuery, JobQuery)
LIST_MAX, LONG_LIST_MAX = 10_000, 100_000
_LONG_LISTS = frozenset({"items", "find_items", "try_rule"})
_USER_NAME = re.compile(r"[\w.@+-]{1,64}")
_LOGICAL = frozenset({"datum", "remove_data", "places", "add_replica", "remove_replica"})
"""Calls whose `name` is a logical file's."""


class LocalClient(Client):
    """`url` is the address of the same server, if it listens: only SOAP messages use it."""

    def __init__(self, domain: Domain, url: str = "") -> None:
        super().__init__(url or "http://127.0.0.1")
        self._domain = domain
        self._who = _user()

    # optional queries, and paged lists

    async def jobs(self, query: JobQuery | None = None) -> list[JobView]:
        wanted = query or JobQuery()
        _check_page(wanted.limit, wanted.offset)
        return [_copied(job, JobView) for job in await self._domain.jobs(wanted)]

    async def decisions(self, query: DecisionQuery | None = None) -> list[DecisionView]:
        wanted = query or DecisionQuery()
        _check_page(wanted.limit, wanted.offset)
        return [_copied(decision, DecisionView) for decision in await self._domain.decisions(wanted)]

    async def count_cases(self, query: CaseQuery | None = None, *, by: str = "") -> CountsView:
        wanted = query or CaseQuery()

        async def part(after: str) -> CountsView:
            return await self._domain.count_cases(msgspec.structs.replace(wanted, after=after), by=by)

        return await sum_counts(part, wanted.after)

    async def count_jobs(self, query: JobQuery | None = None, *, by: str = "") -> CountsView:
        wanted = query or JobQuery()

        async def part(after: str) -> CountsView:
            return await self._domain.count_jobs(msgspec.structs.replace(wanted, after=after), by=by)

        return await sum_counts(part, wanted.after)

    # calls whose form differs from the domain's

    async def register_compensation(self, task: str, flow: str = "") -> list[CompensationView]:
        return await self._domain.register_compensation(CompensationView(task=task, flow=flow), who=self._who)

    async def engine_done(self, engine: str, order: str, answer: Value = True) -> list[EngineOrder]:
        await self._domain.engine_done(engine, order, answer, who=self._who)
        return await self.engine_orders(engine)

    async def engine_event(self, engine: str, event: ExceptionEvent) -> EventAnswer:
        named = event if event.id else msgspec.structs.replace(event, id=uuid.uuid4().hex)
        return await self._domain.engine_event(engine, named, who=self._who)

    async def sync(self, request: SyncRequest) -> SyncAnswer:
        return await self._domain.sync(request, who=self._who)

    async def events(
        self, case: str = "", after: int = 0, *, kind: ChangeKind | Literal[""] = "", patience_s: float = 60.0
    ) -> AsyncIterator[ChangeEvent]:
        id = (await self._domain.case(case)).id if case else ""
        while True:
            async for change in self._domain.events(id, after, kind=kind):
                after = change.serial
                yield change
            if id and (await self._domain.case(id)).status in ENDED:
                return
            await asyncio.sleep(0.2)

    # stored files and archives

    async def has(self, sha256: str) -> bool:
        try:
            await self._domain.kept_size(sha256)
        except NotFound:
            return False
        return True

    async def upload(self, path: str | Path, name: str = "") -> FileRef:
        source = Path(path)
        ref = await asyncio.to_thread(reference_of, source, name)
        if not await self.has(ref.sha256):
            await self._domain.keep(ref.name, content_of(source), sha256=ref.sha256)
        return ref

    async def download(self, ref: FileRef | str, path: str | Path) -> Path:
        known = ref if isinstance(ref, FileRef) else FileRef(sha256=ref, bytes=0, name="")
        await self._domain.kept_size(known.sha256)
        return await write_file(self._domain.kept(known.sha256), known, Path(path))

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
        if not (cases or everything or where):
            raise InvalidRequest("say which cases: by `case`, by `where`, or `everything`", field="case")
        content = await self._domain.export(
            cases, everything=everything, where=where, files=files, leave_out=leave_out_unreachable, who=self._who
        )
        return await write_archive(content, Path(path))

    async def import_archive(
        self, path: str | Path, *, as_new: bool = False, skip_existing: bool = False, resume: bool = False
    ) -> ImportReport:
        return await self._domain.import_archive(
            content_of(Path(path)), as_new=as_new, skip_existing=skip_existing, resume=resume, who=self._who
        )

    async def xes(self, case: str = "", *, flow: str = "", limit: int = 1000) -> str:
        if case:
            view = await self._domain.case(case)
            return xes.log(str(view.id), [(view, await self._domain.history(view.id))])
        _check_page(limit, 0, limit_max=LONG_LIST_MAX)
        cases = await self._domain.cases(flow=flow, limit=limit)
        return xes.log(flow, [(view, await self._domain.history(view.id)) for view in cases])


def _direct(name: str, call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Pass a call on to the domain."""
    signature = inspect.signature(call)

    async def ask(self: LocalClient, *given: Any, **named: Any) -> Any:
        values = signature.bind(self, *given, **named)
        values.apply_defaults()
        arguments = {key: _sent(name, key, value) for key, value in values.arguments.items() if key != "self"}
        for asked in (arguments, *(msgspec.structs.asdict(each) for each in values.args if isinstance(each, QUERIES))):
            limit_max = LONG_LIST_MAX if name in _LONG_LISTS else LIST_MAX
            _check_page(asked.get("limit", 1), asked.get("offset", 0), limit_max=limit_max)
        operation = getattr(self._domain, name)
        if "who" in inspect.signature(operation).parameters:
            arguments["who"] = self._who
        return _copied(await _answered(operation, arguments), signature.return_annotation)

    return ask


async def _answered(operation: Callable[..., Awaitable[Any]], arguments: dict[str, Any]) -> Any:
    """Retry what is unavailable now for as long as an HTTP client would."""
    give_up_at = time.monotonic() + NOT_NOW_S_MAX
    while True:
        try:
            return await operation(**arguments)
        except TemporarilyUnavailable:
            if time.monotonic() >= give_up_at:
                raise
        await asyncio.sleep(NOT_NOW_WAIT_S)


def _sent(name: str, key: str, value: Any) -> Any:
    """An argument as the domain gets it."""
    if name in _LOGICAL and key == "name":
        return logical_name(value)
    if key in ("job", "task"):
        check_job_id(value)
    if key == "inputs" and value is None:
        return {}
    if isinstance(value, msgspec.Struct):
        return _copied(value, type(value))
    if isinstance(value, (dict, list)) and name != "add_to_set":
        return _copied(value, Any)
    return value


def _copied(value: Any, kind: Any) -> Any:
    return value if kind is str else msgspec.json.decode(msgspec.json.encode(value), type=kind)


def _check_page(limit: int, offset: int, *, limit_max: int = LIST_MAX) -> None:
    """The limits that the API has for lists."""
    if not 1 <= limit <= limit_max:
        raise InvalidRequest(f"limit: Expected `int` {'>= 1' if limit < 1 else f'<= {limit_max}'}", field="limit")
    if offset < 0:
        raise InvalidRequest("offset: Expected `int` >= 0", field="offset")


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "local"
    return name if _USER_NAME.fullmatch(name) else "local"


def _answer_directly() -> None:
    """Give the local client every call of the domain that is not defined above."""
    for name, call in inspect.getmembers(Client, inspect.iscoroutinefunction):
        if not name.startswith("_") and name not in vars(LocalClient) and hasattr(Domain, name):
            setattr(LocalClient, name, _direct(name, call))


_answer_directly()
