"""Answers that are compressed for pages of the web app, and those that are not."""  # UI-1

import gzip
from collections.abc import AsyncIterator
from typing import NamedTuple

import aiohttp
import msgspec
import pytest
from multidict import CIMultiDictProxy

from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.server.compression import BYTES_AT_ONCE, BYTES_MIN
from tests.server.conftest import DomainUnderTest, Serving

PAGE = {"Mendflow-Request": "web", "Accept-Encoding": "gzip, br"}
LONG = "/api/v1/flows/long"
FLOW = Flow(name=FlowName("long"), body=JobActivity(name="a", command=f"echo {'word ' * BYTES_AT_ONCE}"))


class Answer(NamedTuple):
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


class Site:
    """A server, asked as it is said, and what it sends as it comes."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self._url, self._http = url, http

    async def ask(self, path: str, headers: dict[str, str]) -> Answer:
        skipped = ("Accept-Encoding", "Accept")
        async with self._http.get(f"{self._url}{path}", headers=headers, skip_auto_headers=skipped) as response:
            return Answer(response.status, response.headers, await response.read())


@pytest.fixture
async def site(serving: Serving, domain: DomainUnderTest) -> AsyncIterator[Site]:
    await domain.deploy(FLOW)
    async with aiohttp.ClientSession(auto_decompress=False) as http:
        yield Site((await serving()).url, http)


async def test_a_page_gets_a_long_answer_compressed_and_the_same(site: Site) -> None:
    plain = await site.ask(LONG, {})
    packed = await site.ask(LONG, PAGE)
    assert len(plain.body) > BYTES_AT_ONCE
    assert packed.headers["content-encoding"] == "gzip" and packed.headers["vary"] == "Accept-Encoding"
    assert int(packed.headers["content-length"]) == len(packed.body) < len(plain.body) / 5
    assert gzip.decompress(packed.body) == plain.body and msgspec.json.decode(plain.body)


@pytest.mark.parametrize(
    "headers", [{}, {"Accept-Encoding": "gzip"}, {"Mendflow-Request": "web"}, {**PAGE, "Accept-Encoding": "br"}]
)
async def test_others_get_it_as_it_is(site: Site, headers: dict[str, str]) -> None:
    answer = await site.ask(LONG, headers)
    assert "content-encoding" not in answer.headers and msgspec.json.decode(answer.body)


async def test_a_short_answer_and_a_refusal_come_as_they_are(site: Site) -> None:
    short = await site.ask("/api/v1/cases", PAGE)
    assert short.status == 200 and len(short.body) < BYTES_MIN and "content-encoding" not in short.headers
    refused = await site.ask("/api/v1/cases/none", PAGE)
    assert refused.status == 404 and msgspec.json.decode(refused.body)["message"]
