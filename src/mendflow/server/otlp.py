"""Spans to a collector, by OTLP over HTTP.

Whoever has a span never waits: it goes into a queue that has an end, and when the collector is away for so long that
the queue is full, new spans are dropped and counted. The messages are those of the protocol's own definition. The SDK
is not used: it makes ids by chance and times spans itself, while ours follow from documents."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

import aiohttp
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from mendflow.core.model.problems import Invalid
from mendflow.services.observe.tracing.spans import Span

log = logging.getLogger("mendflow.traces")

QUEUE_MAX: Final = 20_000
BATCH_MAX: Final = 512
GATHER_S: Final = 0.5
ANSWER_S: Final = 10.0
WAITS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
FAREWELL_S: Final = 2.0
TRY_AGAIN: Final = frozenset({408, 429, 502, 503, 504})
TRACES: Final = "/v1/traces"
_AWAY = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


def address_of(url: str) -> str:
    """Where spans go: below the collector's address, unless the address says so itself."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{url!r} is no address of a collector of traces; give one like http://127.0.0.1:4318")
    return url if parts.path.endswith(TRACES) else url.rstrip("/") + TRACES


def headers_of(text: str) -> dict[str, str]:
    """As OTEL_EXPORTER_OTLP_HEADERS has them: name=value, with commas between."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


class OtlpExporter:
    """`counts` are where spans are counted that were sent, and dropped. `about` is what runs here."""

    def __init__(
        self, url: str, *, about: Mapping[str, str], counts: dict[str, int], queue_max: int = QUEUE_MAX
    ) -> None:
        self.url = address_of(url)
        self._counts = counts
        self._queue_max = queue_max
        self._queue: deque[Span] = deque()
        self._work = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._resource = Resource(attributes=[_pair(name, value) for name, value in about.items()])
        self._headers = {
            **headers_of(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")),
            "Content-Type": "application/x-protobuf",
        }

    def offer(self, span: Span) -> None:
        if len(self._queue) >= self._queue_max:
            self._counts["dropped"] += 1
            return
        self._queue.append(span)
        self._work.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="traces")

    async def stop(self) -> None:
        """Send what there is, if that is quickly done."""
        self._stopping.set()
        self._work.set()
        if self._task is not None:
            try:
                await asyncio.wait_for(self._task, FAREWELL_S)
            except TimeoutError:
                log.warning("the collector of traces is away: %d spans were not sent", len(self._queue))

    async def _run(self) -> None:
        async with aiohttp.ClientSession(trust_env=False, timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as http:
            while self._queue or not self._stopping.is_set():
                await self._work.wait()
                self._work.clear()
                await self._rest(GATHER_S)
                while self._queue:
                    await self._deliver(http, [self._queue[place] for place in range(min(BATCH_MAX, len(self._queue)))])

    async def _deliver(self, http: aiohttp.ClientSession, batch: list[Span]) -> None:
        """Until it is delivered, or refused for good, or the server stops. It stays in the queue meanwhile, and counts
        there."""
        body, tries = encoded(batch, self._resource), 0
        while (accepted := await self._post(http, body)) is None and not self._stopping.is_set():
            await self._rest(WAITS_S[min(tries, len(WAITS_S) - 1)])
            tries += 1
        for _ in batch:
            self._queue.popleft()
        self._counts["sent" if accepted else "dropped"] += len(batch)

    async def _post(self, http: aiohttp.ClientSession, body: bytes) -> bool | None:
        """Whether it was taken; None: ask again later."""
        try:
            async with http.post(self.url, data=body, headers=self._headers, allow_redirects=False) as response:
                await response.read()
        except _AWAY as error:
            log.debug("no answer from the collector of traces: %r", error)
            return None
        if response.status in TRY_AGAIN:
            return None
        if response.status >= 300:
            log.warning("the collector of traces refuses spans with HTTP status %d", response.status)
        return response.status < 300

    async def _rest(self, wait_s: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), wait_s)
        except TimeoutError:
            pass


def encoded(spans: list[Span], resource: Resource) -> bytes:
    scope = ScopeSpans(scope=InstrumentationScope(name="mendflow"), spans=[_message(span) for span in spans])
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope])])
    body: bytes = request.SerializeToString()
    return body


def _message(span: Span) -> Message:
    return Message(
        trace_id=span.trace,
        span_id=span.id,
        parent_span_id=span.parent,
        name=span.name,
        kind=Message.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.start * 1_000_000,
        end_time_unix_nano=max(span.start, span.end) * 1_000_000,
        attributes=[_pair(name, value) for name, value in span.attributes.items() if value != ""],
        links=[Message.Link(trace_id=span.trace, span_id=link) for link in span.links],
        status=Status(code=Status.STATUS_CODE_ERROR, message=span.error) if span.error else Status(),
    )


def _pair(name: str, value: str | int | bool) -> KeyValue:
    if isinstance(value, bool):
        return KeyValue(key=name, value=AnyValue(bool_value=value))
    if isinstance(value, int):
        return KeyValue(key=name, value=AnyValue(int_value=value))
    return KeyValue(key=name, value=AnyValue(string_value=value))
