"""Passwords in the URLs of a flow's files are sealed wherever the flow is stored, and opened for the pilot alone."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mendflow.core.data.url_passwords import password_in
from mendflow.core.model.flow import Flow, ForEach, Input, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.templates import PublicationTemplate
from mendflow.core.model.values import Value
from mendflow.services.api.domain import Domain
from mendflow.services.base.sealing import Sealer
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


async def demand_no_password(server: Server) -> None:
    stored = []
    for kind in ("flow", "flow-version", "case", "job", "item", "snapshot", "decision"):
        stored += [found.body async for found in server.store.scan(kind)]
    assert stored and not any(b"hush" in body for body in stored)


async def test_no_document_holds_a_password_and_the_pilot_gets_it(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # FM-2
    await start(domain, flow())
    await pilot.sync(want=1)
    spec = pilot.held[0].spec
    assert spec.replicas == {"in": (PLAIN,), "each": ("ftp://ann:hush%2F@host/each",)}
    assert spec.publish["out"].url == "sftp://ann:hush%2F@host/0"
    await demand_no_password(server)


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


@pytest.mark.parametrize(
    "url",
    [
        "sftp://ann:PW@${{ inputs.host }}/x",
        "sftp://ann:PW@${{inputs.host}}/x",
        "sftp://${{ inputs.user }}:PW@host/x",
        "sftp://${{ inputs.users['a:b'] }}:PW@${{ inputs.hosts['a@b'] }}:22/x y",
        "${{ inputs.way }}://ann:PW@host${{ inputs.path }}",
        "sftp://ann:PW@host",
    ],
)
def test_a_password_is_found_beside_expressions_in_the_other_parts_of_its_url(url: str) -> None:  # FM-2
    assert password_in(url) == "PW"


@pytest.mark.parametrize("text", ["", "sftp://host/a:b@c", "see sftp://ann:PW@host", "${{ inputs.a }}", "a://b:@c"])
def test_in_other_texts_no_password_is_found(text: str) -> None:
    assert password_in(text) == ""


def flow_with_inputs() -> Flow:
    job = JobActivity(
        name="a",
        command="curl ${{ inputs.url }} ${{ inputs.more.list[0] }}",
        env={"SOURCE": "${{ inputs.url }}", "DATABASE": "postgresql://ann:hush@host/db"},
        inputs={"in": "${{ inputs.url }}", "there": "sftp://ann:hush@${{ inputs.host }}/in"},
    )
    inputs = {
        "url": Input(type="string", default="ftp://ann:hush%2F@host/in"),
        "host": Input(type="string", default="host"),
        "more": Input(type="map", default={"list": ["ftp://ann:hush'@host/more"]}),
    }
    return Flow(name=FlowName("f"), body=job, inputs=inputs)


@pytest.mark.parametrize("given", [{}, {"url": PLAIN, "more": {"list": ["ftp://ann:hush'@host/more"]}}])
async def test_a_password_in_an_input_is_in_no_document_and_the_job_gets_it_wherever_it_is_used(
    server: Server, domain: Domain, pilot: HandPilot, given: dict[str, Value]
) -> None:  # FM-2
    await start(domain, flow_with_inputs(), **given)
    await pilot.sync(want=1)
    spec = pilot.held[0].spec
    assert spec.env == {"SOURCE": PLAIN, "DATABASE": "postgresql://ann:hush@host/db"}
    assert spec.replicas == {"in": (PLAIN,), "there": ("sftp://ann:hush@host/in",)}
    assert spec.command == f"curl {PLAIN} ftp://ann:hush%27@host/more"  # it needs no quotes in a shell
    await demand_no_password(server)


async def test_a_case_with_a_password_in_its_inputs_is_found_again_by_its_key(domain: Domain) -> None:  # FM-2
    await domain.deploy(flow_with_inputs())
    first, again = [await domain.start("f", {"url": PLAIN}, who="me", key="k") for _ in range(2)]
    assert first.id == again.id


async def test_a_password_in_an_exlet_of_rules_is_in_no_document(server: Server, domain: Domain) -> None:  # FM-2
    await domain.put_rules(RuleSet(name="f", exlets={"f": replace(flow(), exlet=True)}), who="me")
    stored = [found.body for kind in ("rules", "rules-version") async for found in server.store.scan(kind)]
    assert len(stored) >= 2 and not any(b"hush" in body for body in stored)


@pytest.mark.parametrize("text", ["plain", "has ${{ it }}", "sealed-abc", "closed-abc", "ends with \0\0", "", "ü" * 40])
async def test_a_secret_of_the_server_is_sealed_whatever_it_is(text: str) -> None:  # FM-2
    async def secret() -> str:
        return "secret of the store"

    sealer, another = Sealer(secret, secret), Sealer(secret, secret)
    sealed = await sealer.seal_text(text)
    assert not text or text not in sealed
    assert sealed != await sealer.seal_text(text), "nobody sees that two are the same"
    assert await another.open_text(sealed) == text


async def test_a_secret_that_was_sealed_as_a_password_is_opened() -> None:  # FM-2
    async def secret() -> str:
        return "secret of the store"

    sealed = await Sealer(secret, secret).sealed({"url": "ftp://ann:hush@host/in"})
    assert await Sealer(secret, secret).open_text(password_in(str(sealed["url"]))) == "hush"
