"""A collector of traces: a real HTTP server that takes what the protocol says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What it was sent. `statuses` are what it answers next, before it takes anything."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Span] = []
        self.runtime: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []

    async def take(self, request: web.Request) -> web.Response:
        if self.statuses:
            return web.Response(status=self.statuses.pop(0))
        assert request.content_type == "application/x-protobuf"
        told = ExportTraceServiceRequest.FromString(await request.read())
        self.headers.append(dict(request.headers))
        for resource in told.resource_spans:
            self.runtime |= {
                pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name"
            }
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return web.Response(
            body=ExportTraceServiceResponse().SerializeToString(), content_type="application/x-protobuf"
        )

    def named(self, start: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(start)]


def said(span: Span) -> dict[str, str | int]:
    """Its attributes."""
    return {
        pair.key: pair.value.int_value if pair.value.HasField("int_value") else pair.value.string_value
        for pair in span.attributes
    }


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    collector.url = f"http://127.0.0.1:{port}"
    try:
        yield collector
    finally:
        await runner.cleanup()
