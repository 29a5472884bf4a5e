"""The client of an embedded server: the calls of `Client`, answered by the domain without HTTP.

An operation is asked of the domain's function of the same name, with who asks. What goes in and out is turned into JSON
and back, and is held to the same bounds, as on the way to another process: so a command sees the same values whichever
client it has."""

import asyncio
import getpass
import inspect
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from mendflow.client.client import Client
from mendflow.client.files import clone_file, content_of, write_archive, write_file
from mendflow.core.model.errors import InvalidRequest, NotFound, TemporarilyUnavailable
from mendflow.core.model.import_reports import ImportReport
from mendflow.core.model.parameters import LongLimit
from mendflow.core.model.principals import account_teller
from mendflow.core.model.sessions import Identity
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import CASE_END_STATES, CaseQuery, ChangeEvent, ChangeKind
from mendflow.lazy import LazyModule, lazy_pattern
from mendflow.local_accounts import account_name
from mendflow.operations.arguments import check_value
from mendflow.operations.operation import ApiOperation
from mendflow.operations.table import OPERATIONS
from mendflow.services.api.domain import Domain

if TYPE_CHECKING:
    from mendflow.formats import xes
else:
    xes = LazyModule("mendflow.formats.xes")

PAGE_CASES = 200
NOT_NOW_WAIT_S = 0.3
NOT_NOW_S_MAX = 60.0
_USER_NAME = lazy_pattern(r"[\w.@+-]{1,64}")


class LocalClient(Client):
    """`url` is the address of the same server, if it listens: only SOAP messages use it."""

    def __init__(self, domain: Domain, url: str = "") -> None:
        super().__init__(url or "http://127.0.0.1")
        self._domain = domain
        self._who = _user()
        self._teller = account_teller(account_name(os.geteuid()))

    async def _ask(self, operation: ApiOperation, arguments: dict[str, Any]) -> Any:
        function = getattr(self._domain, operation.name)
        given = operation.checked(arguments)
        if operation.audited:
            await self._domain.unrecorded_acts.note()
        given.pop("project", None)  # there is one project only where nobody has a token
        wanted = inspect.signature(function).parameters
        given |= {name: said for name, said in (("who", self._who), ("teller", self._teller)) if name in wanted}
        answer = await _answered(function, given)
        if operation.rows is not None:
            return operation.result(rows=_copied(answer.rows, operation.rows), next=answer.next)
        return _copied(answer, operation.result)

    async def me(self) -> Identity:
        """Whoever opens the store itself may do everything."""
        return msgspec.structs.replace(await super().me(), may=sorted(each.id for each in OPERATIONS.values()))

    async def sync(self, request: SyncRequest) -> SyncAnswer:
        return await self._domain.sync(request, who=self._who)

    async def events(
        self, case: str = "", after: int = 0, *, kind: ChangeKind | Literal[""] = "", patience_s: float = 60.0
    ) -> AsyncGenerator[ChangeEvent, None]:
        id = (await self._domain.case(case)).id if case else ""
        while True:
            async for change in self._domain.events(id, after, kind=kind):
                after = change.serial
                yield change
            if id and (await self._domain.case(id)).status in CASE_END_STATES:
                return
            await asyncio.sleep(0.2)

    # stored files and archives

    async def has(self, sha256: str, *, of: str = "") -> bool:
        try:
            await self._domain.file_size(sha256)
        except NotFound:
            return False
        return True

    async def _put(self, ref: FileRef, source: Path) -> None:
        await self._domain.store_file(ref.name, content_of(source), sha256=ref.sha256)

    async def download(self, ref: FileRef | str, path: str | Path, *, of: str = "") -> Path:
        known = ref if isinstance(ref, FileRef) else FileRef(sha256=ref, bytes=0, name="")
        await self._domain.file_size(known.sha256)
        if await clone_file(partial(self._domain.clone_file, known.sha256), known, Path(path)):
            return Path(path)
        return await write_file(self._domain.read_file(known.sha256), known, Path(path))

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

    async def export_audit(self, path: str | Path, *, since: int = 0, until: int = 0) -> Path:
        return await write_archive(self._domain.export_audit(since, until), Path(path))

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
        limit = check_value("limit", limit, LongLimit)
        cases = self._domain.each_case(CaseQuery(flow=flow, limit=min(limit + 1, PAGE_CASES)))
        return "".join([part async for part in xes.log_of_cases(flow, cases, self._domain.history, limit)])


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


def _copied(value: Any, kind: Any) -> Any:
    return value if kind is str else msgspec.json.decode(msgspec.json.encode(value), type=kind)


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "local"
    return name if _USER_NAME.fullmatch(name) else "local"
