"""The catalogue keeps its promises on every store: names of every form, in one order, by pages, one content each."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mendflow.core.data.paths import NAME_CHARS_MAX
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.errors import Conflict
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.data.catalogue.catalogue import Catalogue, NewFiles
from mendflow.stores.contract import Store

NEAR = StorageElement(name="near", url="file:///near")
LONGEST = "/long/" + "/".join(["x" * 200] * 2) + "/" + "y" * (NAME_CHARS_MAX - 408)
NAMES = [
    "/a",
    "/a b",
    "/a+(1)=2,@x:~-.dat",
    "/a/b",
    "/B",
    "/b",
    "/store/1",
    "/store/10",
    "/store/2",
    "/store1",
    LONGEST,
]


def file(name: str, sha256: str = "a" * 64, data_set: str = "") -> LogicalFile:
    return LogicalFile(name=name, sha256=sha256, bytes=3, replicas=(Replica(element="near"),), data_set=data_set)


class NoDataSets:
    async def added(self, file: LogicalFile) -> None: ...


@pytest.fixture
async def catalogue(store: Store) -> AsyncIterator[Catalogue]:
    broken: list[str] = []
    ledger = Ledger(store, broken.append)
    hub = Hub()
    hub.provide(NewFiles, NoDataSets())
    made = Catalogue(store, ledger, SystemClock(), hub)
    await made.elements.put(NEAR, replace=False)
    yield made
    assert not broken


async def test_names_of_every_form_come_back_in_one_order(catalogue: Catalogue) -> None:  # PJ-7
    assert len(LONGEST) == NAME_CHARS_MAX
    for name in NAMES:
        await catalogue.add(file(name))
    assert [each.name for each in await catalogue.files.page(limit=100)] == sorted(NAMES)
    assert [each.name for each in await catalogue.files.page(prefix="/store/")] == ["/store/1", "/store/10", "/store/2"]
    found: list[str] = []
    while page := await catalogue.files.page(limit=3, after=found[-1] if found else ""):
        found += [each.name for each in page]
    assert found == sorted(NAMES)
    for name in NAMES:
        assert (await catalogue.resolve(name)).logical == name


async def test_the_files_of_a_set_are_found_by_when_they_came(catalogue: Catalogue) -> None:
    first = await catalogue.add(file("/1", data_set="s"))
    await catalogue.add(file("/2"))
    last = await catalogue.add(file("/3", data_set="s"))
    await catalogue.files.page()  # which waits until searches see it
    assert [each.name async for each in catalogue.of_set("s", 0)] == ["/1", "/3"]
    assert [each.name async for each in catalogue.of_set("s", last.added_at + 1)] == []
    assert first.added_at <= last.added_at


async def test_of_many_who_name_a_file_at_once_one_content_wins(catalogue: Catalogue) -> None:  # PJ-7
    async def add(content: str) -> str:
        try:
            return (await catalogue.add(file("/raced", content * 64))).sha256[0]
        except Conflict:
            return ""

    won = {each for each in await asyncio.gather(*map(add, "abcdef")) if each}
    assert won == {(await catalogue.files.get("/raced")).sha256[0]}
