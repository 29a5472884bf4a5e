"""Whoever names files that nobody has sent makes the server search: one search at a time, beside which others are
answered."""

import asyncio
import hashlib
from typing import Any

import msgspec
import pytest

from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import Sight
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.services.api.domain import Domain
from mendflow.services.api.file_readers import CASES_PAGE
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import Put

PAGES = 4
EVE, ANN = Sight(frozenset({"blue"})), Sight(frozenset({"red"}))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def old_cases(server: Server, project: str, count: int) -> None:
    documents = [
        CaseDocument(id=CaseId(f"{project}-{number}"), flow="f", digest="", status="completed", project=project)
        for number in range(count)
    ]
    await server.store.write([Put(CASE_KIND, each.id, msgspec.json.encode(each), 0) for each in documents])


async def test_searches_for_unknown_files_of_one_person_are_made_one_after_the_other(
    server: Server, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-3
    await old_cases(server, "blue", PAGES * CASES_PAGE)
    await old_cases(server, "red", CASES_PAGE // 2)
    search, now, most = server.store.search, [0], [0]

    async def counted(*given: Any, **more: Any) -> Any:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0)
        try:
            return await search(*given, **more)
        finally:
            now[0] -= 1

    monkeypatch.setattr(server.store, "search", counted)
    readers = domain.file_readers
    wanted = [digest(str(number)) for number in range(12)]
    searches = [asyncio.create_task(readers.unknown(EVE, {each}, "eve")) for each in wanted]
    await asyncio.sleep(0)
    assert await readers.unknown(ANN, {wanted[0]}, "ann") == {wanted[0]}
    assert sum(each.done() for each in searches) <= 1, "who asks for little does not wait for all of the other's"
    assert await asyncio.gather(*searches) == [{each} for each in wanted]
    assert most[0] <= 2, "one of eve's, and ann's"


async def test_a_semaphore_serves_in_order_and_forgets() -> None:  # SE-3
    semaphore, served = KeyedSemaphore(1), list[int]()

    async def ask(number: int) -> None:
        async with semaphore.of("eve"):
            await asyncio.sleep(0)
            served.append(number)

    first, second, third = (asyncio.create_task(ask(number)) for number in range(3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert served == [0, 2] and not len(semaphore)
