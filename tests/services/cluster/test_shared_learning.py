"""Several servers learn on one store: each counts what ends with it, one of them proposes, another takes over, and
nothing is counted twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from mendflow.core.learning.group_statistics import GroupStatistics
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.learning import AdoptionRequest
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.templates import ResourceTemplates
from mendflow.formats.shipped import default_rules
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock, steady_ms
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.learning.proposal_store import ProposalStore
from mendflow.services.learning.service import LOOK_MS
from mendflow.services.learning.statistics_store import StatisticsStore
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.postgresql.store import PostgresqlStore
from tests.servers.postgresql import PostgresqlServer, postgresql_server
from tests.services.cluster.kit import Cluster, ServerProcess, pilot_of, run
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import flow

EXLETS_ALONE: RuleSet = msgspec.structs.replace(default_rules(), trees={})
TOO_LARGE = Outcome(fault=Fault(name="memoryLimit", category=Category.MEMORY, message="too large", stage="execution"))
LARGE = flow(JobActivity(name="a", command="true", resources=ResourceTemplates(memory_bytes=1_000)))
LOOKS_S = 3 * LOOK_MS / 1000


async def fail_jobs(cluster: Cluster, server: ServerProcess, count: int) -> Sequence[str]:
    """So many cases of this server fail."""
    cases = [(await server.do(server.domain.start("f", {}, who="me"))).id for _ in range(count)]
    pilot = pilot_of(cluster, server.name, pilot=f"p-{server.name}")

    async def over() -> bool:
        await pilot.sync(want=count, a=TOO_LARGE)
        return all([(await cluster.document(case)).status == "failed" for case in cases])

    await cluster.until(over, f"{count} cases that fail")
    return cases


async def counted(store: Store) -> list[tuple[int, int, int]]:
    """Of each cause: its failures, those that nobody took up, and the attempts that were lost."""
    return [(each.count, each.unhandled, each.lost_attempts) for each in await StatisticsStore(store).groups()]


async def jobs_counted(store: Store) -> int:
    return sum(each.jobs for each in await StatisticsStore(store).usage())


def test_what_servers_count_adds_up_and_one_of_them_proposes() -> None:
    # LE-1 JS-3
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two", shipped=EXLETS_ALONE)
        await one.do(one.domain.deploy(LARGE))
        await asyncio.sleep(LOOKS_S)
        await fail_jobs(cluster, one, 2)
        await fail_jobs(cluster, two, 2)
        await asyncio.sleep(LOOKS_S)
        assert await counted(cluster.store) == [(4, 4, 4)]
        assert await jobs_counted(cluster.store) == 4
        [found] = (await ProposalStore(cluster.store).all()).values()
        assert (found.exlet, found.evidence.caught, found.state) == ("more-memory", 4, "open")
        assert [each.id for each in await one.do(one.domain.proposals())] == [found.id]
        assert [each.id for each in await two.do(two.domain.proposals())] == [found.id]

    run(story)


@pytest.mark.parametrize("victim", ["one", "two"])
def test_whichever_server_dies_the_other_goes_on_learning_and_counts_nothing_twice(victim: str) -> None:
    # LE-1 JS-4
    async def story(cluster: Cluster) -> None:
        servers = dict(zip(("one", "two"), await cluster.start("one", "two", shipped=EXLETS_ALONE), strict=True))
        dying, other = servers.pop(victim), next(iter(servers.values()))
        await dying.do(dying.domain.deploy(LARGE))
        await asyncio.sleep(LOOKS_S)
        cases = await fail_jobs(cluster, dying, 2)
        running = (await dying.do(dying.domain.start("f", {}, who="me"))).id
        await asyncio.sleep(LOOKS_S)
        assert await counted(cluster.store) == [(2, 2, 2)]
        dying.kill()
        await cluster.until_home(running, other.name)
        await asyncio.sleep(LOOKS_S)
        assert await counted(cluster.store) == [(2, 2, 2)], f"{cases} are counted already"
        pilot = pilot_of(cluster, other.name)

        async def over() -> bool:
            await pilot.sync(want=1, a=TOO_LARGE)
            return (await cluster.document(running)).status == "failed"

        await cluster.until(over, "the end of the case that was taken over")
        await asyncio.sleep(LOOKS_S)
        assert await counted(cluster.store) == [(3, 3, 3)]
        assert await jobs_counted(cluster.store) == 3
        [found] = (await ProposalStore(cluster.store).all()).values()
        assert (found.exlet, found.evidence.failures) == ("more-memory", 3)

    run(story)


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresqlServer]:
    with postgresql_server() as running:
        yield running


@pytest.fixture
async def servers(database: PostgresqlServer, tmp_path: Path) -> AsyncIterator[list[Server]]:
    made = []
    for name in ("one", "two"):
        file_store = FolderFileStore(tmp_path / name)
        file_store.open()
        server = Server(
            store=PostgresqlStore.from_url(f"{database.url}?schema=t{tmp_path.name[-30:].replace('-', '_').lower()}"),
            file_store=file_store,
            clock=SystemClock(),
            settings=ServerSettings(files_roots=None, learning_look_ms=200),
            version="test",
            shipped=EXLETS_ALONE,
            server=ServerDocument(id=name, url=f"http://{name}"),
            meter=steady_ms,
        )
        await server.open()
        made.append(server)
    yield made
    for server in made:
        await server.close()


async def until_counted(store: Store, failures: int) -> GroupStatistics:
    for _ in range(500):
        groups = await StatisticsStore(store).groups()
        if sum(each.count for each in groups) >= failures and sum(each.lost_attempts for each in groups) >= failures:
            [group] = groups
            return group
        await asyncio.sleep(0.02)
    raise AssertionError(f"{failures} failures were never counted: {await counted(store)}")


@pytest.mark.full
async def test_two_servers_that_add_to_the_same_counts_at_once_lose_nothing_on_postgresql(
    servers: list[Server],
) -> None:
    # LE-1
    await Domain(servers[0]).deploy(LARGE)
    await asyncio.sleep(1)

    async def fail(server: Server, number: int) -> None:
        domain, pilot = Domain(server), HandPilot(Domain(server), f"p-{number}")
        for _ in range(5):
            await domain.start("f", {}, who="me")
            while not pilot.held:
                await pilot.sync(want=1, wait_ms=200)
            await pilot.sync(a=TOO_LARGE)

    await asyncio.gather(*(fail(server, number) for number, server in enumerate(servers)))
    group = await until_counted(servers[0].store, 10)
    await asyncio.sleep(1)
    assert await counted(servers[1].store) == [(10, 10, 10)]
    assert sorted(group.flows.items()) == [("f", 10)]
    [found] = [each for each in await Domain(servers[1]).proposals() if each.state == "open"]
    adopted = await Domain(servers[0]).adopt_proposal(found.id, AdoptionRequest(in_force=True), who="ann")
    assert [each.state for each in await Domain(servers[1]).proposals(every=True)] == [adopted.state] == ["in-force"]
