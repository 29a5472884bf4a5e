"""Alerts, requeued jobs, notifications and webhooks as whoever asks a domain sees them."""

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest

from mendflow.address_guard import PUBLIC_ONLY
from mendflow.core.model.alerts import Notification, WebhookSpec
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import Sight
from mendflow.services.api.domain import Domain
from mendflow.services.api.shared_lists import shared_out
from mendflow.services.base.alerts import AlertFinding
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.poster import NoPoster
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Put
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import flow


class Public(NoPoster):
    """A way out to public addresses only."""

    guard = PUBLIC_ONLY

    def __init__(self) -> None:
        self.got: list[tuple[str, Notification]] = []
        self.news = asyncio.Event()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        self.got.append((url, msgspec.json.decode(body, type=Notification)))
        self.news.set()
        return ""


@pytest.fixture
def way_out() -> Public:
    return Public()


@pytest.fixture
async def server(tmp_path: Path, way_out: Public) -> AsyncIterator[Server]:
    file_store = FolderFileStore(tmp_path / "files")
    file_store.open()
    server = Server(
        store=MemoryStore(),
        file_store=file_store,
        clock=SystemClock(),
        settings=ServerSettings(),
        version="test",
        poster=way_out,
    )
    await server.open()
    yield server
    await server.close()


async def test_an_address_given_with_a_case_is_told_of_its_end(
    domain: Domain, pilot: HandPilot, way_out: Public
) -> None:  # JS-8
    await domain.deploy(flow(JobActivity(name="a", command="true")))
    case = (await domain.start("f", {}, who="me", notify="https://example.org/told")).id
    await pilot.run_all(lambda _: Outcome())
    await asyncio.wait_for(way_out.news.wait(), PATIENCE_S)
    [(url, told)] = way_out.got
    assert (url, told.id, told.kind, told.serial) == ("https://example.org/told", f"{case}:end", "completed", 1)
    assert await domain.notifications() == await domain.notifications(after=0) == [told]
    assert await domain.notifications(after=1) == []


async def test_addresses_that_the_server_may_not_reach_are_refused_when_they_are_given(domain: Domain) -> None:
    await domain.deploy(flow(JobActivity(name="a", command="true")))
    with pytest.raises(InvalidRequest, match="private"):
        await domain.start("f", {}, who="me", notify="http://127.0.0.1/")
    with pytest.raises(InvalidRequest, match="private"):
        await domain.add_webhook(WebhookSpec(url="http://10.0.0.1/"), who="ann")
    assert await domain.cases() == [] and await domain.webhooks() == []


async def test_a_webhook_is_added_tried_and_removed(domain: Domain, way_out: Public) -> None:  # JS-8
    view = await domain.add_webhook(WebhookSpec(url="https://example.org/", on=("failed",), secret="s"), who="ann")
    assert await domain.webhooks() == [view] and view.signed and view.made_by == "ann"
    assert (await domain.try_webhook(view.id, who="ann")).ok
    assert way_out.got[0][1].kind == "test"
    await domain.remove_webhook(view.id, who="ann")
    assert await domain.webhooks() == []
    with pytest.raises(NotFound, match="mendflow admin webhooks"):
        await domain.remove_webhook(view.id, who="ann")


async def test_only_what_runs_can_be_requeued_and_it_stands_in_the_history_who_did_it(
    domain: Domain, pilot: HandPilot
) -> None:  # JS-5
    await domain.deploy(flow(JobActivity(name="a", command="true")))
    case = (await domain.start("f", {}, who="me")).id
    with pytest.raises(Conflict, match="waiting"):
        await domain.requeue(f"{case}/1", who="ann")
    await pilot.sync(want=1)
    await pilot.sync()
    requeued = (await domain.requeue("last/1", who="ann", reason="it hangs")).requeued
    assert requeued is not None and (requeued.by, requeued.reason) == ("ann", "it hangs")
    again = (await domain.requeue(f"{case}/1", who="bob")).requeued
    assert again == requeued, "once is enough"
    assert "requeued by ann: it hangs" in " ".join((await domain.why(f"{case}/1")).facts)
    await pilot.exchange({"a": Outcome()})
    job = await domain.job(f"{case}/1")
    assert job.history[-1].requeue == requeued
    told = [
        (each.source, each.by, each.at, each.message) for each in await domain.history(case) if each.what == "requeued"
    ]
    assert told == [("person", "ann", max(requeued.at, told[0][2]), "attempt 1: it hangs")]
    assert ": requeued by ann: it hangs (" in " ".join((await domain.why(f"{case}/1")).facts)
    assert any("requeued by ann" in each.message for each in await domain.notices())
    await pilot.run_all(lambda _: Outcome())
    with pytest.raises(Conflict, match="over"):
        await domain.requeue(f"{case}/1", who="ann")
    with pytest.raises(NotFound):
        await domain.requeue(f"{case}/9", who="ann")


async def test_newer_alerts_hide_neither_a_critical_one_nor_a_message(server: Server, domain: Domain) -> None:  # JS-5
    alerts = server.runtime.monitor.alerts
    await alerts.raise_(AlertFinding(kind="server-gone", subject="b", episode="1", sentence="server b is gone"))
    server.runtime.notices.post("a report was refused")
    await server.clock.sleep(5)  # the others are newer by the clock, which counts milliseconds
    for number in range(5):
        await alerts.raise_(AlertFinding(kind="failure", subject=f"c:{number}", episode="1", sentence="it failed"))
    assert [each.subject for each in await domain.alerts(severity="critical", limit=3)] == ["b"]
    assert "failure" in {each.kind for each in await domain.alerts(severity="warning", limit=3)}
    everything = await domain.alerts(severity="info", limit=50)
    assert [each.sentence for each in everything if each.kind == "message"] == ["a report was refused"]
    assert [each.message async for each in server.runtime.notices.messages(10)] == ["a report was refused"]
    assert not [each async for each in server.runtime.notices.messages(3)], "no more are looked at"


async def test_many_messages_of_one_project_hide_neither_alerts_nor_those_of_others(
    server: Server, domain: Domain
) -> None:  # SE-2
    alerts, post = server.runtime.monitor.alerts, server.runtime.notices.post
    await alerts.raise_(AlertFinding(kind="server-gone", subject="b", episode="1", sentence="server b is gone"))
    post("of the installation")
    post("of quiet", project="quiet")
    await server.clock.sleep(5)  # the others are newer by the clock, which counts milliseconds
    for number in range(60):
        post(f"{number}", project="loud")
    expected = [*(str(number) for number in range(59, 42, -1)), "of quiet", "of the installation", "server b is gone"]
    listed = [each.sentence for each in await domain.alerts(severity="info", limit=20)]
    assert listed[:17] == expected[:17] and set(listed) == set(expected)
    [quiet] = await domain.alerts(severity="info", limit=20, sight=Sight(frozenset({"quiet"})))
    assert quiet.sentence == "of quiet"
    assert len(await domain.alerts(severity="info", limit=20, sight=Sight(frozenset({"loud"})))) == 20


def test_each_project_has_its_share_of_a_list_and_what_others_leave() -> None:
    loud = [("loud", number) for number in range(10)]
    assert shared_out([*loud, ("quiet", 10), ("other", 11)], 8) == [0, 1, 2, 3, 4, 5, 10, 11]
    assert shared_out(loud, 8) == list(range(8)) and shared_out(loud[:3], 8) == [0, 1, 2]
    many = [(f"p{number % 8}", number) for number in range(80)]
    assert shared_out(many, 8) == list(range(8)), "where all have much, the newest are listed"


async def test_alerts_are_listed_open_ones_alone_or_all(server: Server, domain: Domain) -> None:  # JS-5
    book = server.runtime.monitor.alerts
    await server.runtime.monitor.delivery_failed("hook-1", Notification(id="x", kind="test", at=0, message=""), "dead")
    [alert] = await domain.alerts()
    assert alert.kind == "not-delivered" and alert.id in book.open
    seen = await domain.acknowledge(alert.id, who="ann")
    assert (seen.acknowledged_by, bool(seen.closed_at)) == ("ann", True)
    assert await domain.alerts() == [] and await domain.alerts(every=True) == [seen]
    assert await domain.acknowledge(alert.id, who="bob") == seen, "the first who saw it"


async def test_of_the_cases_of_alerts_one_document_is_held_at_a_time(
    server: Server, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they were given may be large; what is shown of it is small."""
    cases = [CaseId(f"c{number}") for number in range(20)]
    for case in cases:
        document = CaseDocument(id=case, flow="f", digest="d", status="failed", inputs={"n": 1, "big": "x" * 100_000})
        await server.store.write([Put("case", case, msgspec.json.encode(document), 0)])
    held: list[int] = []

    def decoded(body: bytes) -> CaseDocument:
        gc.collect()
        held.append(sum(isinstance(each, CaseDocument) and "big" in each.inputs for each in gc.get_objects()))
        return msgspec.json.decode(body, type=CaseDocument)

    monkeypatch.setattr("mendflow.services.api.alert_operations._decode_case", decoded)
    gc.freeze()  # what was there before need not be looked at
    try:
        given = await domain._given(cases)
    finally:
        gc.unfreeze()
    assert [(given[case].inputs, given[case].left_out) for case in cases] == [({"n": 1}, ["inputs.big"])] * 20
    assert max(held) <= 2
