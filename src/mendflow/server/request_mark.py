"""Which request is being answered: its id, whoever sent it, and the case that it is about. Each line that is logged
meanwhile has it, and the audit log knows the request by the same id.

A task that a request leaves behind keeps its mark; once the request is answered, the mark says nothing any more."""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from mendflow.lazy import lazy_pattern

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from litestar.types import HTTPScope, Message, Send

log = logging.getLogger("mendflow.requests")

ID_HEADER: Final = b"x-request-id"
_KEY: Final = "mendflow_request"
_REQUEST_ID: Final = lazy_pattern(r"[\w.:-]{1,64}")


class RequestMark:
    __slots__ = ("case", "is_over", "request", "who")

    def __init__(self, request: str, who: str) -> None:
        self.request, self.who, self.case, self.is_over = request, who, "", False


_mark: ContextVar[RequestMark | None] = ContextVar("request_mark", default=None)


def request_id(scope: HTTPScope) -> str:
    """An id of the request, which it keeps, and no other has. It begins with the caller's own, if that is one."""
    known = cast("dict[str, Any]", scope)
    if _KEY not in known:
        sent = next((value.decode("latin-1") for name, value in scope["headers"] if name == ID_HEADER), "")
        known[_KEY] = f"{f'{sent}.' if _REQUEST_ID.fullmatch(sent) else ''}{secrets.token_hex(8)}"
    return str(known[_KEY])


@contextmanager
def marked(scope: HTTPScope, who: str) -> Iterator[None]:
    """While the request is answered."""
    mark = RequestMark(request_id(scope), who)
    before = _mark.set(mark)
    try:
        yield
    finally:
        mark.is_over = True
        _mark.reset(before)


def mark_case(case: str) -> None:
    """Say which case the request is about that is being answered."""
    if (mark := _mark.get()) is not None:
        mark.case = case


def current_mark() -> RequestMark | None:
    """That of the request that is being answered, if one is."""
    mark = _mark.get()
    return mark if mark is not None and not mark.is_over else None


async def logged(scope: HTTPScope, send: Send, answer: Callable[[Send], Awaitable[None]]) -> None:
    """Answer a request, and log that it was, if somebody wants so much."""
    if not log.isEnabledFor(logging.INFO):
        await answer(send)
        return
    began, status = time.monotonic(), 0

    async def told(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    try:
        await answer(told)
    finally:
        took_ms = (time.monotonic() - began) * 1000
        log.info("%s %s: %s in %.0f ms", scope["method"], scope["path"], status or "no answer", took_ms)
