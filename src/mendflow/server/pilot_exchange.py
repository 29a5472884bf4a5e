"""The pilots' one exchange, as a bare ASGI handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec

from mendflow.core.model.errors import InvalidRequest, Unreachable
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.sync import ATTEMPTS_MAX, AttemptReport, SyncRequest
from mendflow.core.scheduling.reported_outcomes import unreadable_outcome
from mendflow.server.msgpack import decode_body, send_packed
from mendflow.server.request_body import read_body
from mendflow.services.api.domain import Domain

if TYPE_CHECKING:
    from litestar.types import Receive, Scope, Send

SYNC_BYTES_MAX = 64 << 20
DISCONNECT_CHECK_AFTER_S = 0.05
"""Only if an exchange is held longer than this, the server watches for a disconnect of the pilot."""


class _WithRawReports(SyncRequest, frozen=True, kw_only=True):
    """A request whose reports are read one by one."""

    reports: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=ATTEMPTS_MAX)] = []  # type: ignore[assignment]  # read later


_decoder = msgspec.msgpack.Decoder(SyncRequest)
_raw_decoder = msgspec.msgpack.Decoder(_WithRawReports)
_report_decoder = msgspec.msgpack.Decoder(AttemptReport)
_head_decoder = msgspec.msgpack.Decoder(tuple[JobId, int, msgspec.Raw])
_encoder = msgspec.msgpack.Encoder()

ReleaseExchanges = Callable[[PilotId | None], object]


class PilotExchangeHandler:
    """`let_go` tells the domain to answer the exchanges that it holds: those of one pilot whose connection was lost, so
    that no job is granted in an answer that nobody receives, or all of them (None) because the server stops."""

    def __init__(self, domain: Domain, let_go: ReleaseExchanges | None = None) -> None:
        self._domain = domain
        self._let_go = let_go
        self._tasks: set[asyncio.Task[object]] = set()
        self._stopping = False

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, who: str = "", projects: Iterable[str] = ()
    ) -> None:
        """`who` is the name of the token that the pilot has, `projects` are those that the token names."""
        await send_packed(self._answer(receive, who, tuple(sorted(projects))), scope, send)

    async def stop(self, grace_s: float) -> None:
        """Accept no more requests and end the held ones. After the grace period the rest are cancelled."""
        self._stopping = True
        if self._let_go is not None:
            self._let_go(None)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace_s)
            for task in late:
                task.cancel()

    async def _answer(self, receive: Receive, who: str, projects: tuple[str, ...]) -> bytes:
        request = _decoded(await read_body(receive, SYNC_BYTES_MAX))
        if request.projects != projects:  # whatever the pilot says
            request = msgspec.structs.replace(request, projects=projects)
        if self._stopping:
            raise Unreachable(STOPPING)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        watcher = _DisconnectWatcher(request.pilot, receive, self._let_go)
        try:
            return _encoder.encode(await self._domain.sync(request, who=who))
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            task.uncancel()
            raise Unreachable(STOPPING) from None
        finally:
            watcher.close()
            self._tasks.discard(task)


class _DisconnectWatcher:
    """Watches for a lost connection while an answer is held; most answers are sent before it has even started."""

    def __init__(self, pilot: PilotId, receive: Receive, let_go: ReleaseExchanges | None) -> None:
        self._pilot = pilot
        self._receive = receive
        self._let_go = let_go
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(DISCONNECT_CHECK_AFTER_S, self._begin)

    def close(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if self._let_go is not None:
            self._task = asyncio.create_task(self._watch(self._let_go))

    async def _watch(self, let_go: ReleaseExchanges) -> None:
        """The body has been read, so the next message can only be a disconnect."""
        if (await self._receive())["type"] == "http.disconnect":
            let_go(self._pilot)


STOPPING = "the server is about to stop; ask again later"


def _decoded(body: bytes) -> SyncRequest:
    try:
        request = decode_body(_decoder, body)
    except InvalidRequest:
        if (readable := _without_bad_reports(body)) is None:
            raise
        request = readable
    if request.front:
        raise InvalidRequest("this is not a pilot's request: only servers forward requests", field="front")
    return request


def _without_bad_reports(body: bytes) -> SyncRequest | None:
    """The request in which each report that cannot be read is that of a job that failed for this; None if more is wrong
    with it. Otherwise one such report would keep the pilot from everything else, as it is repeated."""
    try:
        request = _raw_decoder.decode(body)
        rest = {name: getattr(request, name) for name in SyncRequest.__struct_fields__ if name != "reports"}
        return SyncRequest(**rest, reports=[_report(each) for each in request.reports])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _report(packed: msgspec.Raw) -> AttemptReport:
    try:
        return _report_decoder.decode(packed)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        job, fence, _ = _head_decoder.decode(packed)
        return AttemptReport(job, fence, unreadable_outcome(str(error)))
