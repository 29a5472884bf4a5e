"""The results that can be used again are listed, shown and dropped."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.services.base.cluster import JOB_KIND
from mendflow.stores.contract import Delete
from mendflow.stores.sqlite.store import SqliteStore
from tests.services.conftest import server_on
from tests.services.lab import Lab
from tests.services.test_results import flow_of, job, mapped


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    server = server_on(SqliteStore(tmp_path / "store.db"), tmp_path)
    await server.open()
    yield Lab(server)
    await server.close()


async def test_results_are_listed_shown_and_dropped(lab: Lab) -> None:  # DU-2
    samples = await lab.samples(["one", "two"])
    first = await lab.run(mapped(), {"samples": samples})
    other = await lab.run(flow_of(job("a", env={"TOKEN": "secret"}), "g"), {"samples": samples})
    listed = await lab.domain.results()
    assert (listed[0].case, listed[0].name) == (other, "a")
    assert sorted(each.name for each in listed) == ["a", "align", "align", "merge"]
    assert {each.name for each in await lab.domain.results(case=first, name="align")} == {"align"}
    shown = await lab.domain.result(f"{other}/1")
    assert (shown.case, shown.files, shown.declared, shown.reason) == (other, 1, True, "")
    assert shown.made_from["command"] == "a in.txt > out.txt"
    assert shown.made_from["env"] == ["TOKEN"], "values may be secrets"
    with pytest.raises(InvalidRequest, match="say which"):
        await lab.domain.drop_results()
    assert await lab.domain.drop_results(flow="f", unused_ms=60_000) == 0
    assert await lab.domain.drop_results(flow="f", name="merge") == 1
    await lab.run(mapped(), {"samples": samples})
    assert lab.ran == ["merge"]
    assert await lab.domain.drop_results(every=True) == 4
    with pytest.raises(NotFound, match="no result"):
        await lab.domain.result(f"{other}/1")
    await lab.run(mapped(), {"samples": samples})
    assert len(lab.ran) == 3


async def test_of_a_case_only_its_own_results_are_listed_and_none_whose_jobs_are_gone(lab: Lab) -> None:  # DU-2
    samples = await lab.samples(["one"])
    first = await lab.run(flow_of(job("a")), {"samples": samples})
    second = await lab.run(flow_of(job("b")), {"samples": samples})
    assert [each.name for each in await lab.domain.results(case=first)] == ["a"]
    assert [each.name for each in await lab.domain.results(case=second)] == ["b"]
    store = lab.server.store
    for found in [found async for found in store.scan(JOB_KIND, f"{second}/")]:
        await store.write([Delete(JOB_KIND, found.id, found.version)])
    assert [each.name for each in await lab.domain.results(limit=1)] == ["a"], "the newest one is gone"
    assert await lab.domain.results(case=second) == []
    assert await lab.domain.drop_results(case=second) == 1
    assert [each.name for each in await lab.domain.results()] == ["a"]
