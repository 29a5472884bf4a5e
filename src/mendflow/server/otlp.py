"""Exports spans to a collector, by OTLP over HTTP.

The code that ends a span never waits: the span goes into a bounded queue, and when the collector is away for so long
that the queue is full, new spans are dropped and counted. The messages are those of the protocol's own definition. The
SDK is not used: it makes random ids and times spans itself, while our ids and times come from documents."""

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

from mendflow.core.model.errors import InvalidRequest
from mendflow.services.observe.tracing.spans import Span

log = logging.getLogger("mendflow.traces")

QUEUE_MAX: Final = 20_000
BATCH_MAX: Final = 512
BATCH_WAIT_S: Final = 0.5
ANSWER_S: Final = 10.0
RETRY_WAITS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SHUTDOWN_S: Final = 2.0
RETRYABLE_STATUS: Final = frozenset({408, 429, 502, 503, 504})
TRACES_PATH: Final = "/v1/traces"
_CONNECTION_ERRORS = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


def traces_url(url: str) -> str:
    """The URL for spans: below the collector's address, unless the address already includes the path."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"{url!r} is no address of a collector of traces; give one like http://127.0.0.1:4318")
    return url if parts.path.endswith(TRACES_PATH) else url.rstrip("/") + TRACES_PATH


def headers_of(text: str) -> dict[str, str]:
    """Parse headers in the format of OTEL_EXPORTER_OTLP_HEADERS: name=value, separated by commas."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


class OtlpExporter:
    """`counts` counts the spans that were sent and dropped. `attributes` describe this server to the collector."""

    def __init__(
        self, url: str, *, attributes: Mapping[str, str], counts: dict[str, int], queue_max: int = QUEUE_MAX
    ) -> None:
        self.url = traces_url(url)
        self._counts = counts
        self._queue_max = queue_max
        self._queue: deque[Span] = deque()
        self._has_work = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._resource = Resource(attributes=[_attribute(name, value) for name, value in attributes.items()])
        self._headers = {
            **headers_of(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")),
            "Content-Type": "application/x-protobuf",
        }

    def offer(self, span: Span) -> None:
        if len(self._queue) >= self._queue_max:
            self._counts["dropped"] += 1
            return
        self._queue.append(span)
        self._has_work.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="traces")

    async def stop(self) -> None:
        """Send what is queued, if that takes only a moment."""
        self._stopping.set()
        self._has_work.set()
        if self._task is not None:
            try:
                await asyncio.wait_for(self._task, SHUTDOWN_S)
            except TimeoutError:
                log.warning("the trace collector is unreachable: %d spans were dropped", len(self._queue))

    async def _run(self) -> None:
        async with aiohttp.ClientSession(trust_env=False, timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as http:
            while self._queue or not self._stopping.is_set():
                await self._has_work.wait()
                self._has_work.clear()
                await self._pause(BATCH_WAIT_S)
                while self._queue:
                    await self._deliver(http, [self._queue[place] for place in range(min(BATCH_MAX, len(self._queue)))])

    async def _deliver(self, http: aiohttp.ClientSession, batch: list[Span]) -> None:
        """Retry until the batch is delivered, refused for good, or the server stops. It stays in the queue meanwhile,
        and counts there."""
        body, tries = encode_spans(batch, self._resource), 0
        while (accepted := await self._post(http, body)) is None and not self._stopping.is_set():
            await self._pause(RETRY_WAITS_S[min(tries, len(RETRY_WAITS_S) - 1)])
            tries += 1
        for _ in batch:
            self._queue.popleft()
        self._counts["sent" if accepted else "dropped"] += len(batch)

    async def _post(self, http: aiohttp.ClientSession, body: bytes) -> bool | None:
        """Whether the collector accepted it; None: retry later."""
        try:
            async with http.post(self.url, data=body, headers=self._headers, allow_redirects=False) as response:
                await response.read()
        except _CONNECTION_ERRORS as error:
            log.debug("the trace collector does not answer: %r", error)
            return None
        if response.status in RETRYABLE_STATUS:
            return None
        if response.status >= 300:
            log.warning("the trace collector refuses spans with HTTP status %d", response.status)
        return response.status < 300

    async def _pause(self, wait_s: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), wait_s)
        except TimeoutError:
            pass


def encode_spans(spans: list[Span], resource: Resource) -> bytes:
    scope = ScopeSpans(scope=InstrumentationScope(name="mendflow"), spans=[_span_message(span) for span in spans])
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope])])
    body: bytes = request.SerializeToString()
    return body


def _span_message(span: Span) -> Message:
    return Message(
        trace_id=span.trace,
        span_id=span.id,
        parent_span_id=span.parent,
        name=span.name,
        kind=Message.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.start * 1_000_000,
        end_time_unix_nano=max(span.start, span.end) * 1_000_000,
        attributes=[_attribute(name, value) for name, value in span.attributes.items() if value != ""],
        links=[Message.Link(trace_id=span.trace, span_id=link) for link in span.links],
        status=Status(code=Status.STATUS_CODE_ERROR, message=span.error) if span.error else Status(),
    )


def _attribute(name: str, value: str | int | bool) -> KeyValue:
    if isinstance(value, bool):
        return KeyValue(key=name, value=AnyValue(bool_value=value))
    if isinstance(value, int):
        return KeyValue(key=name, value=AnyValue(int_value=value))
    return KeyValue(key=name, value=AnyValue(string_value=value))
