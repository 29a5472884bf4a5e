"""The same on a real PostgreSQL, in real time: two houses with a connection each, and one of them falls silent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.engine.messages import CaseMoved, Event, FinishItem
from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.flow import JobActivity, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock, steady_ms
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.cases.live_case import journal_of
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.postgresql.store import PostgresqlStore
from tests import patience
from tests.servers.postgresql import PostgresqlServer, postgresql_server
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import flow

pytestmark = pytest.mark.full
LEASE_MS = 6_000
TWO = flow(Sequence(name="s", body=(JobActivity(name="a", command="true"), JobActivity(name="b", command="true"))))


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresqlServer]:
    with postgresql_server() as running:
        yield running


@pytest.fixture
async def houses(database: PostgresqlServer, tmp_path: Path) -> AsyncIterator[list[Server]]:
    made = []
    for name in ("one", "two"):
        file_store = FolderFileStore(tmp_path / name)
        file_store.open()
        server = Server(
            store=PostgresqlStore.from_url(f"{database.url}?schema=t{tmp_path.name[-30:].replace('-', '_').lower()}"),
            file_store=file_store,
            clock=SystemClock(),
            settings=ServerSettings(lease_ms=LEASE_MS, files_roots=None),
            version="test",
            server=ServerDocument(id=name, url=f"http://{name}"),
            meter=steady_ms,
        )
        await server.open()
        made.append(server)
    yield made
    for server in made:
        await server.close()


async def until(check: Callable[[], Awaitable[bool]], what: str) -> None:
    await patience.until(check, what, every_s=0.02)


async def test_a_silent_server_loses_its_case_and_what_it_still_writes_is_refused(houses: list[Server]) -> None:
    one, two = houses  # JS-3, JS-4, JS-7
    first, second = Domain(one), Domain(two)
    await first.deploy(TWO)
    case = (await first.start("f", {}, who="me")).id
    held = HandPilot(first)
    await held.sync(want=1)
    membership, runtime = one.membership, one.runtime
    assert isinstance(membership, ServerMembership)
    await membership.drop()

    async def taken() -> bool:
        try:
            return two.runtime.homes.mine(CaseId(case))
        except StoreUnavailable:
            return False

    await until(taken, "two has the case")
    membership.may_promise = lambda: True  # type: ignore[method-assign]  # the fence alone
    with pytest.raises(StoreUnavailable, match="changed by another server"):
        await runtime.manager.finish(CaseId(case), 1, Outcome())
        await runtime.ledger.settled()
    pilot = HandPilot(second)
    pilot.held, pilot.serial = held.held, held.serial

    async def ended() -> bool:
        try:
            await pilot.sync(want=1, wait_ms=100)
            await pilot.exchange({str(each.spec.item): Outcome() for each in pilot.held})
            return (await second.case(case)).status == "completed"
        except RequestError:
            return False  # two reads again what one has changed

    await until(ended, "the end of the case")
    facts = [msgspec.json.decode(entry, type=Event).fact for entry in await two.store.read(journal_of(CaseId(case)))]
    assert [fact.serial for fact in facts if isinstance(fact, FinishItem)] == [1, 2]
    assert {fact.server for fact in facts if isinstance(fact, CaseMoved)} == {
        "two"
    }  # again, if it had to read it again
