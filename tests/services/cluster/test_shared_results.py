"""Results are found on every server of a store, also while several of them make the same at once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mendflow.services.base.cluster import ServerDocument
from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore
from mendflow.stores.postgresql.store import PostgresqlStore
from tests.servers.postgresql import PostgresqlServer, postgresql_server
from tests.services.conftest import server_on
from tests.services.lab import Lab
from tests.services.test_results import SAMPLES, mapped


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresqlServer]:
    with postgresql_server() as running:
        yield running


@pytest.fixture(params=["memory", "postgresql"])
async def labs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Lab]]:
    memory = MemoryStore()
    made = []
    for name in ("one", "two"):
        store: Store = memory
        if request.param == "postgresql":
            url = request.getfixturevalue("database").url
            store = PostgresqlStore.from_url(f"{url}?schema=t{tmp_path.name[-30:].replace('-', '_').lower()}")
        server = server_on(store, tmp_path, server=ServerDocument(id=name, url=f"http://{name}"))
        await server.open()
        made.append(Lab(server))
    for number, lab in enumerate(made):
        lab.pilot.name = type(lab.pilot.name)(f"p-{number}")
    yield made
    for lab in made:
        await lab.server.close()


async def test_one_more_sample_on_another_server_is_one_more_job(labs: list[Lab]) -> None:  # DU-2
    one, two = labs
    await one.run(mapped(), {"samples": await one.samples(SAMPLES)})
    assert len(one.ran) == 21
    case = await two.run(mapped(), {"samples": await two.samples(["new", *SAMPLES])})
    assert sorted(two.ran) == ["align[0]", "merge"]
    assert (await two.domain.case(case)).status == "completed"


async def test_two_servers_that_make_the_same_at_once_both_go_on(labs: list[Lab]) -> None:  # DU-2
    samples = await labs[0].samples(SAMPLES[:6])
    cases = await asyncio.gather(*(lab.run(mapped(), {"samples": samples}) for lab in labs))
    made = [
        {item.item: item.files for item in await lab.domain.items(case)} for lab, case in zip(labs, cases, strict=True)
    ]
    assert made[0] == made[1]
    assert [(await lab.domain.health()).status for lab in labs] == ["ok", "ok"]
    for lab in labs:
        await lab.run(mapped(), {"samples": samples})
        assert lab.ran == []
