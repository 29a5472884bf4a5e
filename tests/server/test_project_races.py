"""A name belongs to one project, also if two ask for it at once, if an administrator changes what it names, and if it
looks like the name of something else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from mendflow.client import Client
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.data_sets import DataSetSpec
from mendflow.core.model.errors import Conflict, RequestError
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.principals import Principal
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.secrets import SecretValue
from mendflow.services.api.project_lookup import ProjectLookup
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import job_flow, task_flow
from tests.server.people import PEOPLE, As, KnownPeople, clients_of

PATIENCE_S = 200
ENGINES = [
    Principal("yawl", frozenset({"engine"}), {"red": "viewer"}),
    Principal("other", frozenset({"engine"}), {"blue": "viewer"}),
]

NEAR = StorageElement(name="near", url="file:///near")
FILE = LogicalFile(name="/x", sha256="a" * 64, bytes=3, replicas=(Replica(element="near"),))


@pytest.fixture
async def people(serving: Serving) -> AsyncIterator[As]:
    served = await serving(KnownPeople([*PEOPLE.values(), *ENGINES]))
    async with clients_of([*PEOPLE, *(each.name for each in ENGINES)], served) as clients:
        yield clients


MAKES: dict[str, Callable[[Client, str], Awaitable[Any]]] = {
    "flow": lambda client, who: client.deploy(
        Flow(name=FlowName("x"), body=JobActivity(name="a", command=f"echo {who}"))
    ),
    "the same flow": lambda client, _: client.deploy(job_flow("x")),
    "secret": lambda client, who: client.set_secret("x", SecretValue(f"the-secret-of-{who}")),
    "limit": lambda client, _: client.set_limit("x", LimitCount(3)),
    "rules": lambda client, _: client.put_rules(RuleSet(name="x")),
    "data set": lambda client, _: client.put_data_set(DataSetSpec(name="x")),
    "filled data set": lambda client, _: client.add_to_set("x", []),
    "logical file": lambda client, _: client.add_data(FILE),
    "engine": lambda client, _: client.register_engine("x"),
}


@pytest.mark.parametrize("kind", MAKES)
async def test_of_two_who_make_a_name_at_once_one_gets_it(
    people: As, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:  # SE-1
    """Both have passed the gate before either writes."""
    await people("root").put_element(NEAR)
    both, find = asyncio.Barrier(2), ProjectLookup.find

    async def find_together(lookup: ProjectLookup, kind: str, name: str) -> str | None:
        found = await find(lookup, kind, name)
        await both.wait()
        return found

    who = ("yawl", "other") if kind == "engine" else ("ann", "boris")
    with monkeypatch.context() as patched:
        patched.setattr(ProjectLookup, "find", find_together)
        async with asyncio.timeout(PATIENCE_S):
            made = await asyncio.gather(*(MAKES[kind](people(each), each) for each in who), return_exceptions=True)
    refused = [each for each in made if isinstance(each, BaseException)]
    assert len(refused) == 1 and isinstance(refused[0], RequestError), made
    assert refused[0].code in ("conflict", "temporarily-unavailable")
    winner = who[made.index(refused[0]) - 1]
    await MAKES[kind](people(winner), winner)


async def test_what_an_administrator_changes_stays_in_its_project(people: As, domain: DomainUnderTest) -> None:  # SE-1
    ann, root = people("ann"), people("root")
    await ann.set_secret("key", SecretValue("the-first-value"))
    await ann.set_limit("licence", LimitCount(2))
    await ann.deploy(job_flow("night"))
    await ann.put_data_set(DataSetSpec(name="files"))
    assert (await root.set_secret("key", SecretValue("the-second-value"))).project == "red"
    assert (await root.set_limit("licence", LimitCount(3))).project == "red"
    assert (await root.deploy(task_flow("night"))).project == "red"
    assert (await root.put_rules(RuleSet(name="night"))).project == "red"
    await root.put_data_set(DataSetSpec(name="files"))
    assert await domain.project_lookup.find("data set", "files") == "red"
    assert (await domain.set_secret("key", SecretValue("the-third-value"), who="here")).project == "red"
    assert [each.project for each in await ann.secrets()] == ["red"]


async def test_an_engine_is_registered_where_its_token_says(people: As) -> None:  # SE-1
    assert (await people("yawl").register_engine("one")).project == "red"
    assert (await people("yawl").register_engine("two", project="default")).project == "default"
    with pytest.raises(RequestError) as refused:
        await people("yawl").register_engine("three", project="blue")
    assert refused.value.code == "forbidden"
    assert (await people("root").register_engine("four", project="blue")).project == "blue"


async def test_an_engine_cannot_take_the_name_of_a_case(people: As) -> None:  # SE-1
    await people("ann").deploy(job_flow("night"))
    case = (await people("ann").start("night")).id
    await people("ann").cancel(case)
    with pytest.raises(Conflict, match="that of a case"):
        await people("other").register_engine(case)
    assert (await people("ann").case(case)).project == "red"


async def test_the_name_of_an_engine_is_no_case(people: As, domain: DomainUnderTest) -> None:  # SE-1
    await people("yawl").register_engine("one")
    for name, project in (("one", None), ("one:7", "red"), ("one.7.x1", "red"), ("one.7.x1/1", "red"), ("two:7", None)):
        assert await domain.project_lookup.find("case", name) == project, name
