"""Jobs whose files do not come: how often they are counted as failed, and how that is told."""

import asyncio
from typing import Any

from mendflow.core.model.flow import Catch, ForEach, JobActivity, Scope, UserTask
from mendflow.services.api.domain import Domain
from tests.patience import PATIENCE_S
from tests.services.test_domain import named, start


async def test_a_job_whose_files_do_not_come_fails_once(server: Any, domain: Domain, restart: Any) -> None:
    reading = JobActivity(name="a", command="true", inputs={"x": "lfn:/nosuch"})
    loop = ForEach(name="loop", items=[1, 2, 3, 4], body=reading, on_fault="finish")
    task = UserTask(name="look", role="author")
    case = await start(domain, named(Scope(name="s", body=loop, catches=(Catch(body=task),))))
    async with asyncio.timeout(PATIENCE_S):
        while not any(each.item == "look" for each in await domain.items(case)):
            await asyncio.sleep(0)
    counts = [(count.name, count.failed, count.waiting) for count in (await domain.case(case)).counts]
    assert counts == [("a", 4, 0), ("look", 0, 1)]
    assert sum(each.state == "failed" for each in await domain.items(case)) == 4
    told = await domain.why(f"{case}:a[1]")
    assert f"{told.sentence} {told.facts}".count("a[1]:") == 0, "what begins with its name names it twice"
    assert all(fact.count(": the catalogue") <= 1 and fact.count("a[") <= 1 for fact in (await domain.why(case)).facts)
    await restart(server)
    assert sorted((each.name, each.failed) for each in (await domain.case(case)).counts) == [("a", 4), ("look", 0)]
