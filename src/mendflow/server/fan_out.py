"""Requests about all cases: sent to all live servers at once, and their answers merged.

What is in the store any server can answer alone; here are the requests about what only the home of a case has in
memory: its progress, what waits in its retry levels, its events. Other servers get a short time to answer; one that
does not is named in the header `Mendflow-Unheard`, instead of being left out silently."""

import asyncio
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec
from litestar.types import HTTPScope, Message, Receive, Scope, Send

from mendflow.core.model.errors import RequestError
from mendflow.core.model.overview import OverviewView, PilotTotals, SiteTotals, WaitingReason
from mendflow.core.model.repair_views import ApplyResult, DrainResult, LevelView
from mendflow.core.model.rule_views import ApplyProgress, LeftReason
from mendflow.core.model.views import CaseView
from mendflow.operations.table import API
from mendflow.server.case_forwarding import EVENT_STREAM, CaseHomeLookup
from mendflow.server.peer_requests import PeerRequests
from mendflow.server.request_body import read_body
from mendflow.server.routes.parameters import APPLICATION
from mendflow.services.base.cluster import ServerDocument, first_case_of

LAST_ID_HEADER: Final = b"last-event-id"
_ID_LINE: Final = re.compile(rb"^id: (\d+)$", re.MULTILINE)
UNHEARD_HEADER: Final = b"mendflow-unheard"
PATIENCE_S: Final = 2.0
ACTING_S: Final = 10.0
LOOK_EVERY_S: Final = 0.5
JOBS_SHOWN: Final = 100

T = TypeVar("T")
PeerAnswers = Mapping[str, bytes]
"""The answers of all servers, by name; this one's first."""
Merge = Callable[[PeerAnswers], bytes]
Inner = Callable[[Scope, Receive, Send], Any]
_encode = msgspec.json.Encoder().encode


def _read(answers: PeerAnswers, type: type[T]) -> dict[str, T]:
    return {server: msgspec.json.decode(body, type=type) for server, body in answers.items()}


def merge_cases(answers: PeerAnswers) -> bytes:
    """The page as this server found it, with each case as its home reports it."""
    pages = _read(answers, list[CaseView])
    at_home = {view.id: view for server, views in pages.items() for view in views if view.server == server}
    return _encode([at_home.get(view.id, view) for view in next(iter(pages.values()))])


def merge_overviews(answers: PeerAnswers) -> bytes:
    """What the store says, as this server found it; the queues and the pilots of all servers added."""
    told = list(_read(answers, OverviewView).values())
    own, jobs = told[0], Counter[str]()
    for each in told:
        jobs.update(each.jobs)
    pilots = PilotTotals(
        up=sum(each.pilots.up for each in told),
        slots=sum(each.pilots.slots for each in told),
        busy=sum(each.pilots.busy for each in told),
    )
    waiting = [*_sum_waiting(told), *(each for each in own.waiting if each.kind in ("user-task", "person"))]
    merged = msgspec.structs.replace(own, jobs=dict(jobs), pilots=pilots, sites=_sum_sites(told), waiting=waiting)
    return _encode(merged)


def _sum_waiting(told: Sequence[OverviewView]) -> list[WaitingReason]:
    found: dict[str, WaitingReason] = {}
    for each in (reason for view in told for reason in view.waiting if reason.kind in ("job", "retry")):
        known = found.get(each.reason)
        if known is not None:
            samples = [*known.samples, *each.samples]
            each = msgspec.structs.replace(known, jobs=known.jobs + each.jobs, samples=samples)
        found[each.reason] = each
    return sorted(found.values(), key=lambda each: -each.jobs)


def _sum_sites(told: Sequence[OverviewView]) -> list[SiteTotals]:
    found: dict[str, SiteTotals] = {}
    for each in (site for view in told for site in view.sites):
        known = found.get(each.name)
        found[each.name] = (
            each
            if known is None
            else msgspec.structs.replace(
                known, pilots=known.pilots + each.pilots, slots=known.slots + each.slots, busy=known.busy + each.busy
            )
        )
    return [found[name] for name in sorted(found)]


def merge_levels(answers: PeerAnswers) -> bytes:
    found: dict[int, list[LevelView]] = {}
    for views in _read(answers, list[LevelView]).values():
        for view in views:
            found.setdefault(view.level, []).append(view)
    return _encode([_sum_levels(found[level]) for level in sorted(found)])


def _sum_levels(views: Sequence[LevelView]) -> LevelView:
    return msgspec.structs.replace(
        views[0],
        waiting=sum(view.waiting for view in views),
        express=sum(view.express for view in views),
        next_at=min((view.next_at for view in views if view.next_at), default=0),
        jobs=[job for view in views for job in view.jobs][:JOBS_SHOWN],
    )


def merge_drained(by_server: PeerAnswers) -> bytes:
    answers = list(_read(by_server, DrainResult).values())
    return _encode(msgspec.structs.replace(answers[0], let_go=sum(each.let_go for each in answers)))


def own_answer(answers: PeerAnswers) -> bytes:
    """All servers do it, and say the same."""
    return next(iter(answers.values()))


def merge_applied(by_server: PeerAnswers) -> bytes:
    """A failure that any server has taken up, or was refused by, is not counted as left."""
    answers = list(_read(by_server, ApplyResult).values())
    return _encode(msgspec.structs.replace(answers[0], **_applied(answers)))


def merge_apply_progress(by_server: PeerAnswers) -> bytes:
    """Each server goes through all failures of the group, and takes up its own: the slowest says how far all are. Only
    of the last application: a server that was not reached for it still tells of the one before."""
    told = list(_read(by_server, ApplyProgress).values())
    newest = _last_applied(told)
    begun = [each for each in told if each is newest or (newest.application and each.application == newest.application)]
    running = any(each.running for each in begun)
    progress = msgspec.structs.replace(
        begun[0],
        started_at=min(each.started_at for each in begun),
        running=running,
        total=max(each.total for each in begun),
        done=min(each.done for each in begun) if running else max(each.done for each in begun),
        stopped=any(each.stopped for each in begun),
        ended_at=0 if running else max(each.ended_at for each in begun),
        earlier=[],
        **_applied(begun),
    )
    return _encode(progress)


def _last_applied(told: Sequence[ApplyProgress]) -> ApplyProgress:
    """One that no server has taken part in before another; of several one that runs, or of the server that was asked.
    When they began is compared last: servers have clocks of their own."""
    replaced = {name for each in told for name in each.earlier}
    last = [each for each in told if each.started_at and each.application not in replaced]
    return max(last or told, key=lambda each: (each.running, each is told[0], each.started_at))


def _applied(answers: Sequence[ApplyResult] | Sequence[ApplyProgress]) -> dict[str, Any]:
    taken_up = list(dict.fromkeys(id for each in answers for id in each.taken_up))
    cases = list(dict.fromkeys(case for each in answers for case in each.cases))
    refused = {id: reason for each in answers for id, reason in _own_refusals(each, cases).items()}
    done = {*taken_up, *refused}
    told: dict[str, list[LeftReason | None]] = {}
    for each in answers:
        for id in _own_left(each, cases):
            if id not in done:
                told.setdefault(id, []).append(each.why_left.get(id))
    why_left = {id: reason for id, reasons in told.items() if (reason := _known_reason(reasons))}
    return {"taken_up": taken_up, "left": [*told], "why_left": why_left, "cases": cases, "refused": refused}


def _known_reason(told: Sequence[LeftReason | None]) -> LeftReason | None:
    """The server that has the case knows better than those that have not. One of an older version gives no reason, and
    may be the one that has it."""
    better = next((each for each in told if each not in (None, "elsewhere")), None)
    return better or (None if None in told else "elsewhere")


def _own_left(answer: ApplyResult | ApplyProgress, cases: Sequence[str]) -> list[str]:
    """Those that it is for this server to leave: of a case that goes on, only the server that let it do so knows."""
    elsewhere = {*cases}.difference(answer.cases)
    return [id for id in answer.left if first_case_of(id) not in elsewhere]


def _own_refusals(answer: ApplyResult | ApplyProgress, cases: Sequence[str]) -> dict[str, str]:
    """The same of what was refused."""
    elsewhere = {*cases}.difference(answer.cases)
    return {id: reason for id, reason in answer.refused.items() if first_case_of(id) not in elsewhere}


APPLYING: Final = re.compile("/failures/[^/]+/apply")
APPLICATION_BYTES: Final = 8
"""Of a name for what all servers do together, by which their answers about it are found."""
MERGERS: Final[list[tuple[str, re.Pattern[str], Merge]]] = [
    ("GET", re.compile("/cases"), merge_cases),
    ("GET", re.compile("/overview"), merge_overviews),
    ("GET", re.compile("/levels"), merge_levels),
    ("POST", re.compile("/levels/[^/]+/drain"), merge_drained),
    ("POST", re.compile("/pilots/[^/]+/drain"), own_answer),
    ("DELETE", re.compile("/pilots/[^/]+/drain"), own_answer),
    ("POST", APPLYING, merge_applied),
    ("GET", APPLYING, merge_apply_progress),
    ("POST", re.compile("/failures/[^/]+/apply/stop"), merge_apply_progress),
]


class FanOut:
    def __init__(self, homes: CaseHomeLookup, peer_requests: PeerRequests, bytes_max: int) -> None:
        self._homes = homes
        self._peer_requests = peer_requests
        self._bytes_max = bytes_max

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send, inner: Inner) -> bool:
        """Answer the request if it is for all servers; returns whether it was. `inner` answers for this server."""
        path = scope["path"].removeprefix(API)
        if path == "/events" and scope["method"] == "GET":
            await MergedEventStream(self._homes, self._peer_requests, scope, send).listen(receive, inner)
            return True
        if not self._homes.live_servers():
            return False
        for method, pattern, merge in MERGERS:
            if scope["method"] == method and pattern.fullmatch(path):
                await self._ask_all(scope, receive, send, inner, merge)
                return True
        return False

    async def _ask_all(self, scope: HTTPScope, receive: Receive, send: Send, inner: Inner, merge: Merge) -> None:
        body, others = await read_body(receive, self._bytes_max), self._homes.live_servers()
        application = secrets.token_hex(APPLICATION_BYTES) if merge is merge_applied else ""
        asked = asyncio.gather(*(self._ask_peer(server, scope, body, application) for server in others))
        scope = cast(HTTPScope, {**scope, "state": {**scope["state"], APPLICATION: application}})
        status, headers, answer = await _answer_of_this_server(inner, scope, body)
        answers = await asked
        if status < 300:
            heard = {server.id: each for server, each in zip(others, answers, strict=True) if each is not None}
            unheard = [server.id for server in others if server.id not in heard]
            answer = merge({self._homes.id: answer, **heard})
            headers = [each for each in headers if each[0] != b"content-length"]
            headers += [(UNHEARD_HEADER, ", ".join(unheard).encode("ascii", "replace"))] if unheard else []
            headers.append((b"content-length", str(len(answer)).encode()))
        await send(cast(Message, {"type": "http.response.start", "status": status, "headers": headers}))
        await send(cast(Message, {"type": "http.response.body", "body": answer, "more_body": False}))

    async def _ask_peer(self, server: ServerDocument, scope: HTTPScope, body: bytes, application: str) -> bytes | None:
        try:
            async with asyncio.timeout(PATIENCE_S if scope["method"] == "GET" else ACTING_S):
                asked = self._peer_requests.open_request(server, scope, body, application=application)
                async with asked as response:
                    return await response.read() if response.status < 300 else None
        except (RequestError, TimeoutError):
            return None


async def _answer_of_this_server(
    inner: Inner, scope: HTTPScope, body: bytes
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    started: dict[str, Any] = {}
    pieces: list[bytes] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.update(cast(dict[str, Any], message))
        elif message["type"] == "http.response.body":
            pieces.append(message["body"])

    await inner(cast(Scope, dict(scope)), receive, send)
    return started["status"], list(started["headers"]), b"".join(pieces)


class MergedEventStream:
    """The events of all servers as one stream. A server that joins later is included from then on."""

    def __init__(self, homes: CaseHomeLookup, peer_requests: PeerRequests, scope: HTTPScope, send: Send) -> None:
        self._homes = homes
        self._peer_requests = peer_requests
        self._scope = scope
        self._send = send
        self._has_begun = asyncio.Event()
        self._streams: dict[str, asyncio.Task[None]] = {}
        self._last_ids: dict[str, bytes] = {}  # of each server that has told anything
        self._followed_first: set[str] = set()  # from the place of whoever reads

    async def listen(self, receive: Receive, inner: Inner) -> None:
        others = asyncio.create_task(self._follow_peers())
        try:
            await inner(cast(Scope, dict(self._scope)), receive, self._answer_of_this_server)
        finally:
            under_way = [others, *self._streams.values()]
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _answer_of_this_server(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.start" and message["status"] == 200:
            self._has_begun.set()

    async def _follow_peers(self) -> None:
        await self._has_begun.wait()
        is_first = True
        while True:
            for server in self._homes.live_servers():
                task = self._streams.get(server.id)
                if task is None or task.done():
                    if is_first:
                        self._followed_first.add(server.id)
                    relay = self._relay_events(server, self._scope_after(server.id))
                    self._streams[server.id] = asyncio.create_task(relay)
            is_first = False
            await asyncio.sleep(LOOK_EVERY_S)

    def _scope_after(self, server: str) -> HTTPScope:
        """The request, for what that server has told since, or since the reader's place if it has told nothing yet; all
        from now on if it was not there when the reader came."""
        last = self._last_ids.get(server)
        if last is None and server in self._followed_first:
            return self._scope
        headers = [each for each in self._scope["headers"] if each[0] != LAST_ID_HEADER]
        headers += [(LAST_ID_HEADER, last)] if last is not None else []
        query = b"&".join(part for part in self._scope["query_string"].split(b"&") if not part.startswith(b"after="))
        return cast(HTTPScope, {**self._scope, "headers": headers, "query_string": query})

    async def _relay_events(self, server: ServerDocument, scope: HTTPScope) -> None:
        """Relay the events of that server, only whole events. When the connection breaks, the next look at the servers
        opens it again."""
        try:
            async with self._peer_requests.open_request(server, scope, b"") as response:
                left = b""
                if response.content_type != EVENT_STREAM:
                    return
                async for piece in response.content.iter_any():
                    whole_ones, end, left = (left + piece).rpartition(b"\n\n")
                    if end:
                        if ids := _ID_LINE.findall(whole_ones + end):
                            self._last_ids[server.id] = ids[-1]
                        await self._send({"type": "http.response.body", "body": whole_ones + end, "more_body": True})
        except RequestError:
            return
