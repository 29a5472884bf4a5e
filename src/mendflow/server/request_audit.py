"""Puts requests on record, at the one place that every request passes: each operation that changes something, or that
takes much out, once, with its outcome; and what was refused for want of a right.

The entry is on disk before the first byte of the answer is sent. If it cannot be written, the caller is told so instead
of the answer. A request that another server forwarded is on record there: it knows where the caller is."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from mendflow.core.audit.chain import bounded
from mendflow.core.model.audit import Outcome, RequestRecord
from mendflow.core.model.errors import RequestError, StoreUnavailable, Unauthorized
from mendflow.core.model.principals import PILOT, Principal
from mendflow.operations.operation import ApiOperation
from mendflow.operations.table import API, find_operation
from mendflow.server.error_bodies import send_error
from mendflow.server.failed_attempts import NOTHING_SHOWN
from mendflow.server.local_callers import READ_METHODS
from mendflow.server.request_mark import ID_HEADER, request_id
from mendflow.services.audit.audit_log import AuditLog
from mendflow.services.base.buckets import BoundedCounts, Bucket, BucketTable

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Message, Send

    from mendflow.services.audit.unrecorded_acts import UnrecordedActs

REFUSED: Final = frozenset({401, 403})
REFUSALS_MAX: Final = 100
REFUSALS_PER_S: Final = 1.0
"""So many refusals of one caller, and of all who are not known, are written at once, and so many in each second after
that: whoever guesses tokens must not fill the store. The next one that is written says how many were left out."""
ALL_REFUSALS_MAX: Final = 1000
ALL_REFUSALS_PER_S: Final = 10.0
"""So many of all callers together."""
NAMES_MAX: Final = 1000
"""So many callers are counted by themselves."""
SOAP: Final = "/soap/"
_API_WORDS: Final = len(API.strip("/").split("/"))
BODY: Final = "http.response.body"


class _ErrorBody(msgspec.Struct):
    code: str


_read_error = msgspec.json.Decoder(_ErrorBody).decode


class RequestNote:
    """What is known of a request while it is answered. Whoever knows more fills it in."""

    def __init__(self, operation: str, object: str, who: str) -> None:
        self.operation, self.object, self.who = operation, object, who
        self.project = self.made = ""


_note: ContextVar[RequestNote | None] = ContextVar("request_note", default=None)


def is_noted() -> bool:
    """Whether the request that is being answered may be put on record."""
    return _note.get() is not None


def note(*, operation: str = "", object: str = "", project: str = "", who: str = "", made: str = "") -> None:
    """Say more of the request that is being answered, if it is to be put on record."""
    if (known := _note.get()) is not None:
        known.operation = operation or known.operation
        known.object = object or known.object
        known.project = project or known.project
        known.who = who or known.who
        known.made = made or known.made


def note_made(answer: object) -> None:
    """The answer of an operation, which has the id of what was made, if anything was; and its project."""
    if _note.get() is None:
        return
    view = getattr(answer, "view", answer)  # of a token that was made, its view has the id
    if isinstance(made := getattr(view, "id", None), str):
        note(made=made)
    if isinstance(project := getattr(view, "project", None), str):
        note(project=project)


class Refusals:
    """How many refusals may be written of each caller, and of all. What was left out is counted."""

    def __init__(self) -> None:
        self._by_name = BucketTable(lambda now: Bucket(REFUSALS_PER_S, REFUSALS_MAX, now), NAMES_MAX)
        self._all = Bucket(ALL_REFUSALS_PER_S, ALL_REFUSALS_MAX, time.monotonic())
        self._left_out = BoundedCounts(NAMES_MAX)

    def admit(self, name: str) -> int | None:
        """How many of this caller, and of those that nobody counts alone, were left out before this one; None if this
        one is left out too. Whoever is not known has the empty name."""
        now = time.monotonic()
        if self._by_name.of(name, now).try_take(1, now) or self._all.try_take(1, now):
            self._left_out.add(name)
            return None
        left_out = self._left_out.pop(name) + self._left_out.others
        self._left_out.others = 0
        return left_out


class RequestAudit:
    """`log` is None where nothing is put on record; that something was done is then told to `unrecorded`."""

    def __init__(self, log: AuditLog | None, unrecorded: UnrecordedActs) -> None:
        self._log = log
        self._unrecorded = unrecorded
        self._refusals = Refusals()

    def watch(
        self, scope: HTTPScope, send: Send, caller: Principal | None, *, refusal: RequestError | None = None
    ) -> AnswerOnRecord | None:
        """The way of the answer to this request, or None if it goes straight to the caller. `caller` is None if
        nobody knows who it is; `refusal` says why it is about to be refused. Who shows no token and only wants to read
        says nothing of anybody: such requests are counted, and would drown the record."""
        if self._log is None:
            return None
        method, path = scope["method"], scope["path"]
        operation = find_operation(method, path)
        name, audited = _named(operation, method, path, caller)
        if not audited and _only_reads(operation, method) and _shows_nothing(refusal):
            return None
        object = _object(operation.path, scope) if operation is not None else path.removeprefix(SOAP)
        known = RequestNote(name or f"{method} {bounded(path)}", object, caller.name if caller is not None else "")
        return AnswerOnRecord(self._log, self._refusals, scope, send, known, always=audited, admitted=refusal is None)

    async def note_unrecorded(self, scope: HTTPScope, caller: Principal | None) -> None:
        """Nothing is put on record here: if this request is one that would be, it is noted that something was not."""
        if self._log is None:
            method, path = scope["method"], scope["path"]
            _, audited = _named(find_operation(method, path), method, path, caller)
            if audited:
                await self._unrecorded.note()


class AnswerOnRecord:
    """Sends an answer after its request is on record. Unless `always`, only refusals are, and what somebody names an
    operation for on the way."""

    def __init__(
        self,
        log: AuditLog,
        refusals: Refusals,
        scope: HTTPScope,
        send: Send,
        known: RequestNote,
        *,
        always: bool,
        admitted: bool,
    ) -> None:
        self._log, self._refusals, self._send, self._known = log, refusals, send, known
        self._admitted = admitted
        self._always, self._first_name = always, known.operation
        client = scope.get("client")
        self._source = client[0] if client else ""
        self._request = request_id(scope)
        self._start: Any = None
        self._begun = self._failed = False
        _note.set(known)

    async def send(self, message: Message) -> None:
        if self._failed:
            return
        if self._begun:
            await self._send(message)
        elif message["type"] == "http.response.start":
            self._start = message
            if message["status"] < 400:
                await self._begin(message["status"], b"")
        else:
            # Of a refusal the body says why.
            await self._begin(self._start["status"], message["body"] if message["type"] == BODY else b"")
            if not self._failed:
                await self._send(message)

    async def _begin(self, status: int, body: bytes) -> None:
        self._begun = True
        record = self._record(status, body)
        try:
            if record is not None:
                await self._log.write(record)
                self._start["headers"] = [*self._start.get("headers", ()), (ID_HEADER, self._request.encode())]
        except StoreUnavailable as error:
            self._failed = True
            text = "what was asked for could not be put on record, and may have been done: "
            await send_error(self._send, StoreUnavailable(text + error.message, told=text + error.told))
            return
        await self._send(self._start)

    def _record(self, status: int, body: bytes) -> RequestRecord | None:
        outcome: Outcome = "done" if status < 400 else "refused" if status < 500 else "failed"
        left_out: int | None = 0
        if status not in REFUSED and not self._is_audited:
            left_out = None
        elif status in REFUSED or (status >= 400 and not (self._admitted and self._known.who)):
            # Whoever is not let in, or is known to nobody, could ask without end.
            left_out = self._refusals.admit(self._known.who)
        return None if left_out is None else self._record_of(outcome, _code(status, body), left_out)

    @property
    def _is_audited(self) -> bool:
        return self._always or self._known.operation != self._first_name

    def _record_of(self, outcome: Outcome, code: str, left_out: int = 0) -> RequestRecord:
        known = self._known
        return RequestRecord(
            who=bounded(known.who),
            source=self._source,
            operation=known.operation,
            object=bounded(known.object),
            project=bounded(known.project),
            made=bounded(known.made),
            outcome=outcome,
            code=code,
            request=self._request,
            left_out=left_out,
        )

    def close(self) -> None:
        """The request is over. If nobody was answered, that is on record, too."""
        if not self._begun and self._is_audited:
            self._begun = True
            is_known = self._admitted and self._known.who
            left_out = 0 if is_known else self._refusals.admit(self._known.who)
            if left_out is not None:
                self._log.put(self._record_of("unanswered", "", left_out))


def _named(operation: ApiOperation | None, method: str, path: str, caller: Principal | None) -> tuple[str, bool]:
    """The name of what is asked, and whether it is put on record whatever becomes of it."""
    if operation is None and path.startswith(SOAP) and method == "POST":
        return f"soap.{path.removeprefix(SOAP).partition('/')[0]}", True
    name = operation.name if operation is not None else ""
    if name == "store_file" and caller is not None and caller.roles == {PILOT}:
        return name, False  # the outputs of a job: the case has them
    return name, operation is not None and operation.audited


def _only_reads(operation: ApiOperation | None, method: str) -> bool:
    return not operation.audited if operation is not None else method in READ_METHODS


def _shows_nothing(refusal: RequestError | None) -> bool:
    return isinstance(refusal, Unauthorized) and refusal.fields.get("reason") == NOTHING_SHOWN


def _code(status: int, body: bytes) -> str:
    if status < 400:
        return ""
    try:
        return bounded(str(_read_error(body).code))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return f"http-{status}"


def _object(template: str, scope: HTTPScope) -> str:
    """What the path names: the words that stand for a name in the operation's path."""
    path = scope["raw_path"].decode("latin-1").partition("?")[0]
    words = [word for word in path.split("/") if word][_API_WORDS:]
    names: list[str] = []
    for number, part in enumerate(part for part in template.split("/") if part):
        if part.endswith(":path}"):
            names.append("/".join(words[number:]))
            break
        if part.startswith("{") and number < len(words):
            names.append(words[number])
    return unquote("/".join(names))
