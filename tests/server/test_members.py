"""Members of projects: what their administrators say holds at once, for names and not for single tokens. SE-2"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from mendflow.core.model.members import MemberRequest
from mendflow.core.model.principals import PILOT, USER, Principal, project_name_flaw
from mendflow.server.access import AccessControl, single_token
from mendflow.server.runner import HttpServer
from mendflow.services.api.metrics import snapshot
from mendflow.services.cluster import project_members
from mendflow.services.cluster.access_tokens import TOKENS_KIND, AccessTokens
from mendflow.services.cluster.project_members import (
    MEMBERS_ID,
    MEMBERS_MAX,
    MemberDocument,
    ProjectMembers,
    StoredMember,
)
from mendflow.stores.contract import Put
from mendflow.stores.memory import MemoryStore
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import job_flow

BOSS = "the-token-of-the-boss"


class Installation:
    """A server with tokens in its store, and clients by name."""

    def __init__(self, served: HttpServer) -> None:
        self._served = served
        self.clients: dict[str, Client] = {}

    async def add(self, name: str, **more: object) -> Client:
        made = await self.clients["boss"].create_token(TokenRequest(name=name, **more))  # type: ignore[arg-type]  # as a caller gives them
        return await self.open(name, made.token)

    async def open(self, name: str, token: str) -> Client:
        client = Client(self._served.url, token=token)
        await client.__aenter__()
        self.clients[name] = client
        return client


@pytest.fixture
async def place(serving: Serving, domain: DomainUnderTest) -> AsyncIterator[Installation]:
    served = await serving(AccessControl(single_token(BOSS), stored=domain._server.access_tokens))
    found = Installation(served)
    await found.open("boss", BOSS)
    yield found
    for client in found.clients.values():
        await client.__aexit__(None, None, None)


async def test_an_administrator_of_a_project_says_who_is_what_there(place: Installation) -> None:
    lead = await place.add("lead", projects={"red": "admin"})
    ann = await place.add("ann", roles=["reader"])
    await lead.deploy(job_flow("red-flow"), project="red")
    with pytest.raises(NotFound):
        await ann.flow("red-flow")
    made = await lead.put_member("red", "ann", MemberRequest(role="viewer"))
    assert (made.name, made.role, made.set_by, made.through) == ("ann", "viewer", "lead", "membership")
    assert (await ann.flow("red-flow")).name == "red-flow"
    with pytest.raises(Forbidden):
        await ann.start("red-flow", {})
    await lead.put_member("red", "ann", MemberRequest(role="operator"))
    await ann.start("red-flow", {})
    assert {project: role for project, role in (await ann.me()).projects.items()} == {
        "default": "viewer",
        "red": "operator",
    }
    told = [(each.name, each.role, each.through) for each in await ann.members("red")]
    assert told == [("ann", "operator", "membership"), ("lead", "admin", "token")]
    await lead.remove_member("red", "ann")
    with pytest.raises(NotFound):
        await ann.flow("red-flow")
    with pytest.raises(NotFound, match="no member"):
        await lead.remove_member("red", "ann")


async def test_who_can_only_look_at_the_default_project_is_asked_which_one_is_meant(place: Installation) -> None:
    ann = await place.add("ann", roles=["reader"])
    await place.clients["boss"].put_member("red", "ann", MemberRequest(role="author"))
    with pytest.raises(InvalidRequest, match=r"say which project .* is in default \(viewer\), red \(author\)"):
        await ann.deploy(job_flow("new"))
    assert (await ann.deploy(job_flow("new"), project="red")).project == "red"


async def test_who_sees_some_projects_is_not_shown_the_sum_of_the_others(  # SE-2
    place: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "PROJECTS_MAX", 1)
    monkeypatch.setattr(snapshot, "FLOWS_MAX", 1)
    boss, eve = place.clients["boss"], await place.add("eve", projects={"other": "viewer"})
    anybody = await place.add("anybody", roles=["reader"])
    for project, count in {"red": 3, "blue": 2, "green": 1}.items():
        await boss.deploy(job_flow(f"of-{project}"), project=project)
        for _ in range(count):
            await boss.start(f"of-{project}", {})
    [told] = await boss.stats()
    assert {each.project: each.cases for each in told.projects} == {"red": 3, "(other)": 3}
    assert project_name_flaw("(other)") != ""
    for client in (eve, anybody):
        [seen] = await client.stats()
        assert seen.projects == [] and seen.cases == []


async def test_a_project_leaves_room_for_the_members_of_others(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-2
    store = MemoryStore()
    await store.open()
    members = ProjectMembers(store, TOKENS_KIND)
    full = [StoredMember(project="red", name=f"m-{number}", role="viewer") for number in range(MEMBERS_MAX)]
    body = msgspec.json.encode(MemberDocument(full))
    await store.write([Put(TOKENS_KIND, MEMBERS_ID, body, 0)])
    with pytest.raises(Conflict, match="project red has 1000 members"):
        await members.put(StoredMember(project="red", name="one-more", role="viewer"))
    await members.put(StoredMember(project="red", name="m-1", role="author"))
    await members.put(StoredMember(project="blue", name="ann", role="viewer"))
    assert [each.name for each in members.of("blue")] == ["ann"]
    monkeypatch.setattr(project_members, "ALL_MEMBERS_MAX", MEMBERS_MAX + 1)
    with pytest.raises(Conflict, match="all projects together"):
        await members.put(StoredMember(project="green", name="ann", role="viewer"))


async def test_nobody_else_changes_members(place: Installation) -> None:
    await place.add("lead", projects={"red": "admin"})
    ann, eve = await place.add("ann", projects={"red": "author"}), await place.add("eve", projects={"blue": "admin"})
    with pytest.raises(Forbidden):
        await ann.put_member("red", "ann", MemberRequest(role="admin"))
    with pytest.raises(Forbidden):
        await ann.remove_member("red", "lead")
    with pytest.raises(NotFound):
        await eve.put_member("red", "eve", MemberRequest(role="viewer"))
    with pytest.raises(NotFound):
        await eve.members("red")
    with pytest.raises(InvalidRequest, match="not a valid name"):
        await eve.put_member("blue", "no such name", MemberRequest(role="viewer"))


async def test_a_token_that_names_projects_is_for_these_alone(place: Installation) -> None:
    """A restricted token of somebody does not grow by what that person may do."""
    boss, narrow = place.clients["boss"], await place.add("ann", projects={"blue": "viewer"})
    await boss.deploy(job_flow("red-flow"), project="red")
    await boss.put_member("red", "ann", MemberRequest(role="author"))
    with pytest.raises(NotFound):
        await narrow.flow("red-flow")
    wide = await place.add("ann", roles=["user"])
    assert (await wide.flow("red-flow")).name == "red-flow"
    assert (await wide.me()).projects == {"default": "author", "red": "author"}, "what it was before stays"


async def test_other_servers_read_members_and_tokens_of_machines_get_nothing() -> None:
    store = MemoryStore()
    await store.open()
    one, two = (AccessTokens(store, lambda: 1_800_000_000_000) for _ in range(2))
    await one.put_member("red", "ann", "author", who="lead")
    await two.read()
    ann = Principal("ann", frozenset({USER}))
    assert two.members.added_to(ann).role_in("red") == "author"
    assert two.members.added_to(Principal("ann", frozenset({PILOT}))).role_in("red") is None
    bounded = Principal("ann", frozenset(), {"blue": "viewer"})
    assert two.members.added_to(bounded).role_in("red") is None
    assert two.members.added_to(bounded, by_issuer=True).role_in("red") == "author", "an issuer bounds nobody"
    await one.remove_member("red", "ann")
    await two.read()
    assert two.members.added_to(ann).role_in("red") is None


async def test_whoever_may_let_jobs_run_by_a_membership_counts_as_such() -> None:
    store = MemoryStore()
    await store.open()
    tokens = AccessTokens(store, lambda: 1_800_000_000_000)
    await tokens.create(TokenRequest(name="ann", roles=["reader"]), who="boss")
    assert not tokens.let_jobs_run()
    await tokens.put_member("red", "ann", "operator", who="boss")
    assert tokens.let_jobs_run()

    def nobody(_new: Principal) -> None:
        raise Forbidden("this server is for one")

    tokens.demand_new = nobody
    with pytest.raises(Forbidden, match="for one"):
        await tokens.put_member("red", "bob", "operator", who="boss")


async def test_two_servers_change_members_at_once() -> None:
    store = MemoryStore()
    await store.open()
    servers = [ProjectMembers(store, TOKENS_KIND) for _ in range(4)]
    await asyncio.gather(
        *(
            server.put(StoredMember(project="red", name=f"member-{number}", role="viewer"))
            for number, server in enumerate(servers)
        )
    )
    last = ProjectMembers(store, TOKENS_KIND)
    last.take(await store.get(TOKENS_KIND, "members"))
    assert [each.name for each in last.of("red")] == [f"member-{number}" for number in range(4)]
