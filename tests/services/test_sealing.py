"""Passwords in the URLs of a flow's files are sealed wherever the flow is stored, and opened for the pilot alone."""

from pathlib import Path

from mendflow.core.model.flow import Flow, ForEach, JobActivity, PublicationTemplate
from mendflow.core.model.ids import FlowName
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot, server_on
from tests.services.test_domain import start

PLAIN = "ftp://ann:hush%2F@host/in"


def flow(url: str = PLAIN) -> Flow:
    job = JobActivity(
        name="a",
        command="true",
        inputs={"in": url, "each": "${{ item }}"},
        files={"out": "out"},
        publish={"out": PublicationTemplate(url="sftp://ann:hush%2F@host/${{ index }}")},
    )
    return Flow(name=FlowName("f"), body=ForEach(name="l", body=job, items=[PLAIN.replace("/in", "/each")]))


async def test_no_document_holds_a_password_and_the_pilot_gets_it(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # FM-2
    await start(domain, flow())
    await pilot.sync(want=1)
    spec = pilot.held[0].spec
    assert spec.replicas == {"in": (PLAIN,), "each": ("ftp://ann:hush%2F@host/each",)}
    assert spec.publish["out"].url == "sftp://ann:hush%2F@host/0"
    stored = []
    for kind in ("flow", "flow-version", "case", "job"):
        stored += [found.body async for found in server.store.scan(kind)]
    assert stored and not any(b"hush" in body for body in stored)


async def test_the_same_password_has_the_same_seal_so_that_the_flow_is_the_same(domain: Domain) -> None:  # FM-2
    first, again = [await domain.deploy(flow()) for _ in range(2)]
    other = await domain.deploy(flow("ftp://ann:other@host/in"))
    assert (first.version, again.version, other.version) == (1, 1, 2)


async def test_what_was_sealed_is_opened_after_a_restart(tmp_path: Path) -> None:  # FM-2
    store = MemoryStore()
    first = server_on(store, tmp_path)
    await first.open()
    await start(Domain(first), flow())
    await first.close()
    second = server_on(store, tmp_path)
    await second.open()
    pilot = HandPilot(Domain(second))
    await pilot.sync(want=1)
    assert pilot.held[0].spec.replicas["in"] == (PLAIN,)
    await second.close()
