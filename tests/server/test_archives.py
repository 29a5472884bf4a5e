"""Archives over HTTP: streamed out, streamed in, refused whole."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mendflow.client import Client
from mendflow.client.files import omitted_cases
from mendflow.core.model.errors import NotFound, RequestError, Unreachable
from mendflow.core.model.flow import Empty, Flow, Wait
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.views import CaseQuery
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.runner import serve
from mendflow.services.api.archive import remote_trees
from mendflow.services.api.archive.records import HeadRecord, TreeRecord
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.cluster import NoPeers, ServerDocument
from mendflow.stores.memory import MemoryStore
from tests.contract.archived import archive_of_one, content, records, unpacked, world_on
from tests.server.town import Citizen, town, until
from tests.services.conftest import server_on

SHORT = Flow(name=FlowName("s"), body=Empty(name="e"))
LONG = Flow(name=FlowName("f"), body=Wait(name="w", duration=3_600_000))


async def test_a_case_goes_out_and_comes_in_by_the_client(tmp_path: Path) -> None:
    server = server_on(MemoryStore(), tmp_path)
    await server.open()
    served = await serve(create_app(Domain(server), access=AccessControl()))
    try:
        async with Client(served.url) as client:
            await client.deploy(LONG)
            case = (await client.start("f")).id
            file = await client.export(tmp_path / "f.archive", [case])
            report = await client.import_archive(file, as_new=True)
            assert report.imported == report.suspended
            found = await client.find_cases(CaseQuery(where="status == 'suspended'"))
            assert [view.id for view in found.rows] == report.imported
            with pytest.raises(NotFound):
                await client.export(tmp_path / "none.archive", ["f-none"])
            assert not (tmp_path / "none.archive").exists()
            file.write_bytes(file.read_bytes()[:-5])
            with pytest.raises(RequestError, match="ends too early"):
                await client.import_archive(file)
    finally:
        await served.stop()
        await server.close()


def _content(file: Path) -> list[Any]:
    return content(file.read_bytes())


async def _living(citizen: Citizen) -> str:
    async with citizen.client() as client:
        return (await client.start("f")).id


async def test_any_server_exports_what_lives_on_all_of_them(tmp_path: Path) -> None:
    async with town(tmp_path, "one", "two", "three") as citizens:
        await citizens[0].domain.deploy(LONG)
        cases = {await _living(citizen) for citizen in citizens}
        files = list[Path]()
        for citizen in citizens:
            async with citizen.client() as client:
                files.append(await client.export(tmp_path / f"{citizen.name}.archive", everything=True))
        assert _content(files[0]) == _content(files[1]) == _content(files[2])
        assert omitted_cases(files[0]) == []
    async with world_on(MemoryStore(), tmp_path) as world:
        report = await unpacked(world.domain, files[0].read_bytes())
        assert set(report.imported) == set(report.suspended) == cases


async def test_a_case_that_is_over_is_exported_by_anybody_although_its_letter_waits(tmp_path: Path) -> None:
    async with town(tmp_path, "one", "two") as (one, two):
        await one.domain.deploy(SHORT)
        case = (await one.domain.start("s", {}, who="ann", notify="http://127.0.0.1:9/nobody")).id
        await until(lambda: case not in one.server.runtime.manager.live)
        await one.server.runtime.ledger.settled()
        assert one.server.runtime.homes.knows(case), "the letter keeps the home"
        await one.served.stop()  # and nobody needs to ask there
        async with two.client() as client:
            file = await client.export(tmp_path / "s.archive", [case])
        assert ("treerecord", case) in [(type(each).__name__.lower(), each.root) for each in records_of(file)]


async def test_a_server_that_cannot_be_asked_is_named_with_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_trees, "PATIENCE_MS", 0)
    async with town(tmp_path, "one", "two") as (one, two):
        await one.domain.deploy(LONG)
        away, here = await _living(two), await _living(one)
        await two.served.stop()
        with pytest.raises(Unreachable) as refused:
            await one.domain.export([away, here], who="ann")
        assert away in refused.value.message and "two" in refused.value.message and two.url in refused.value.message
        async with one.client() as client:
            file = await client.export(tmp_path / "a", [away, here], leave_out_unreachable=True)
        assert omitted_cases(file) == [away]
        assert [each.root for each in records_of(file)] == [here]
    async with world_on(MemoryStore(), tmp_path) as world:
        report = await unpacked(world.domain, file.read_bytes())
        assert report.imported == [here] and away in report.notes[-1]


async def test_cases_of_a_server_that_dies_are_exported_by_whoever_takes_them(tmp_path: Path) -> None:
    async with town(tmp_path, "one", "two", "three") as (one, two, three):
        await one.domain.deploy(LONG)
        case = await _living(two)
        await two.die()
        async with three.client() as client:
            file = await client.export(tmp_path / "a", [case])
        [tree] = records_of(file)
        assert tree.root == case and tree.live == [case]


def records_of(file: Path) -> list[TreeRecord]:
    return [record for record in records(file.read_bytes()) if isinstance(record, TreeRecord)]


class _Sends(NoPeers):
    """A server that sends what it has, however little that is."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)

    async def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        yield self.answers.pop(0)


class _Lives:
    async def home(self, root: CaseId) -> ServerDocument | None:
        return ServerDocument(id="two", url="http://two")


async def test_what_another_server_sends_is_asked_for_again_until_it_is_whole(tmp_path: Path) -> None:
    case, whole = await archive_of_one(tmp_path)
    case_id, folder = CaseId(case), tmp_path / "remote_trees"
    folder.mkdir()
    damaged = whole[:200] + bytes([whole[200] ^ 255]) + whole[201:]
    found = remote_trees.RemoteTrees(_Lives(), _Sends(whole[:-9], damaged, b"", whole), SystemClock(), folder)
    await found.gather([case_id], leave_out=False)
    told = [record async for record in found.records(case_id)]
    assert told == [record for record in records(whole) if not isinstance(record, HeadRecord)]
