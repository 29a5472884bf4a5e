"""Results are found by what they were made from on every store: by the same server, by another, and by a later one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from mendflow.core.model.ids import PilotId
from mendflow.services.base.cluster import ServerDocument
from mendflow.stores.contract import Store
from tests.contract.backends import Backend, Durable, LastSeenItems
from tests.contract.conftest import stores
from tests.services.conftest import server_on
from tests.services.lab import Lab
from tests.services.test_results import SAMPLES, flow_of, job, mapped


@asynccontextmanager
async def opened(store: Store, folder: Path, name: str = "") -> AsyncIterator[Lab]:
    """A server on a store, alone unless it has a name."""
    document = ServerDocument(id=name, url=f"http://{name}") if name else None
    server = server_on(store, folder, server=document)
    await server.open()
    lab = Lab(server)
    lab.pilot.name = PilotId(f"p-{name or 'alone'}")
    yield lab
    await server.close()


@pytest.fixture(params=[each for each in stores(Backend) if each.values != ("sqlite",)])
async def labs(
    request: pytest.FixtureRequest, backends: Callable[[str], Backend], tmp_path: Path
) -> AsyncIterator[list[Lab]]:
    """Two servers on one store, each with its own connection to it. A SQLite file is for one server."""
    backend = backends(request.param)
    kept = backend.make(tmp_path)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                opened(kept if isinstance(backend, LastSeenItems) else backend.make(tmp_path), tmp_path, name)
            )
            for name in ("one", "two")
        ]


async def test_only_what_changed_runs_again(backend: Backend, tmp_path: Path) -> None:  # DU-2
    async with opened(backend.make(tmp_path), tmp_path) as lab:
        await lab.run(mapped(), {"samples": await lab.samples(SAMPLES[:5])})
        assert len(lab.ran) == 6
        case = await lab.run(mapped(), {"samples": await lab.samples([*SAMPLES[:5], "new"])})
        assert sorted(lab.ran) == ["align[5]", "merge"]
        assert (await lab.domain.case(case)).status == "completed"
        await lab.run(mapped("g"), {"samples": await lab.samples([*SAMPLES[:5], "new"])})
        assert lab.ran == [], "in another flow too"


async def test_results_are_listed_and_dropped(backend: Backend, tmp_path: Path) -> None:  # DU-2
    store = backend.make(tmp_path)
    async with opened(store, tmp_path) as lab:
        samples = await lab.samples(["one"])
        case = await lab.run(flow_of(job("a")), {"samples": samples})
        await store.refresh()
        [result] = await lab.domain.results(name="a")
        assert (result.case, result.item, result.files, result.declared) == (case, "a", 1, True)
        assert await lab.domain.drop_results(name="a") == 1
        await lab.run(flow_of(job("a")), {"samples": samples})
        assert lab.ran == ["a"]


async def test_two_cases_at_once_that_make_the_same_give_one_result(backend: Backend, tmp_path: Path) -> None:  # DU-2
    async with opened(backend.make(tmp_path), tmp_path) as lab:
        await lab.domain.deploy(mapped())
        inputs = {"samples": await lab.samples(SAMPLES[:4])}
        cases = [(await lab.domain.start("f", inputs, who="me", cache="declared")).id for _ in range(2)]
        await lab.work()
        made = [{item.item: item.files for item in await lab.domain.items(case)} for case in cases]
        assert made[0] == made[1] and len(made[0]) == 5
        assert [(await lab.domain.case(case)).status for case in cases] == ["completed"] * 2
        third = await lab.run(mapped(), inputs)
        assert lab.ran == []
        assert set((await lab.states(third)).values()) == {"cached"}


async def test_another_server_of_the_store_finds_them(labs: list[Lab]) -> None:  # DU-2
    one, two = labs
    first = await one.run(mapped(), {"samples": await one.samples(SAMPLES[:5])})
    case = await two.run(mapped(), {"samples": await two.samples(["new", *SAMPLES[:5]])})
    assert sorted(two.ran) == ["align[0]", "merge"]
    assert (await two.reasons(case))["align[1]"].startswith(f"cached: made by case {first} item align[0]")


async def test_two_servers_that_make_the_same_at_once_both_go_on(labs: list[Lab]) -> None:  # DU-2
    samples = await labs[0].samples(SAMPLES[:4])
    cases = await asyncio.gather(*(lab.run(mapped(), {"samples": samples}) for lab in labs))
    statuses = [(await lab.domain.case(case)).status for lab, case in zip(labs, cases, strict=True)]
    assert statuses == ["completed"] * 2
    for lab in labs:
        await lab.run(mapped(), {"samples": samples})
        assert lab.ran == []


async def test_a_later_server_finds_them(durable: Durable, tmp_path: Path) -> None:  # DU-2
    async with opened(durable.make(tmp_path), tmp_path) as lab:
        samples = await lab.samples(SAMPLES[:5])
        await lab.run(mapped(), {"samples": samples})
    async with opened(durable.make(tmp_path), tmp_path) as lab:
        await lab.run(mapped(), {"samples": samples})
        assert lab.ran == []
