"""An alert is open as long as what it tells of lasts, and opens again when that comes back."""

import asyncio

import msgspec
import pytest

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import Limits
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.scheduling.queue import WaitingGroup
from mendflow.services.observe import monitor, unmet_needs
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from tests.services.cluster.kit import Cluster, Front, keep_running, pilot_of, run
from tests.services.conftest import CAPACITY, HandPilot
from tests.services.observe.test_monitors import alerts, start, until_alert
from tests.services.recovery.kit import FAILED, flow

GPU_JOB = JobActivity(name="a", command="true", resources=ResourceTemplates(gpus=1))


async def open_alerts(cluster: Cluster) -> list[tuple[str, str]]:
    return sorted((each.kind, each.case) for each in await alerts(cluster) if each.open)


def test_a_job_that_no_pilot_could_take_is_told_again_when_the_pilot_leaves_that_could() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=0)
        case = await start(one, GPU_JOB)
        alert = await asyncio.gather(until_alert(cluster, "no-pilot"), keep_running(pilot, 100))
        await one.do(one.runtime.monitor.acknowledge(alert[0].id, who="ann"))
        able = msgspec.structs.replace(CAPACITY, gpus=1)
        busy = HandPilot(Front(cluster, "one"), "p-gpu", able)  # type: ignore[arg-type]  # as pilot_of
        await asyncio.gather(keep_running(busy, 60), keep_running(pilot, 60))
        assert await open_alerts(cluster) == []
        await busy.sync(leaving=True, leaves="its time is over")
        await keep_running(pilot, 40)
        assert await open_alerts(cluster) == [], "another may be about to come"
        await keep_running(pilot, 60)
        assert await open_alerts(cluster) == [("no-pilot", case)]
        [told] = await alerts(cluster)
        assert (told.acknowledged_at, told.closed_at) == (0, 0), "nobody has seen that it is so again"

    run(story)


def test_a_limit_that_is_removed_again_is_told_again() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        case = await start(one, JobActivity(name="a", command="true", limits=Limits(named=(("licences", 1),))))
        await until_alert(cluster, "limit-unset")
        await one.do(one.runtime.limits.set("licences", 1, who="me"))
        await until_alert(cluster, "limit-unset", open=False)
        await one.do(one.runtime.limits.remove("licences"))
        await until_alert(cluster, "limit-unset")
        assert await open_alerts(cluster) == [("limit-unset", case)]

    run(story)


def test_a_case_that_is_held_is_told_of_by_the_server_that_takes_it_up() -> None:  # JS-4, FM-8
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"), on_unhandled="hold")))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        pilot = pilot_of(cluster, "one", "two")
        await pilot.sync(want=1, wait_ms=1_000)
        await pilot.exchange({"a": FAILED})
        alert = await until_alert(cluster, "case-held")
        assert (alert.case, alert.raised_by) == (case, "one")
        one.kill()
        await cluster.until_home(case, "two")
        await asyncio.sleep(60)
        assert ("case-held", case) in await open_alerts(cluster)
        await two.do(two.domain.cancel(case, who="me"))
        await until_alert(cluster, "case-held", open=False)

    run(story)


def test_a_job_stays_told_while_it_waits_however_many_alike_come_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # JS-5
    monkeypatch.setattr(unmet_needs, "ALIKE_JOBS_MAX", 3)
    before = JobActivity(name="b", command="true", priority=5, resources=ResourceTemplates(gpus=1))

    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=0)
        case = await start(one, GPU_JOB)
        await keep_running(pilot, 100)
        assert await open_alerts(cluster) == [("no-pilot", case)]
        for _ in range(14):
            await start(one, before)
        await keep_running(pilot, 100)
        assert ("no-pilot", case) in await open_alerts(cluster)
        assert len([each for each in await alerts(cluster) if each.case == case]) == 1, "told once"
        await one.do(one.domain.cancel(case, who="me"))
        await keep_running(pilot, 30)
        assert ("no-pilot", case) not in await open_alerts(cluster)

    run(story)


def test_what_is_not_told_at_one_look_since_there_is_too_much_is_told_at_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # JS-5
    monkeypatch.setattr(monitor, "RAISED_MAX", 2)

    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=0)
        for _ in range(5):
            await start(one, GPU_JOB)
        await keep_running(pilot, 120)
        assert len(await open_alerts(cluster)) == 5

    run(story)


def test_the_queue_is_looked_through_as_often_for_many_alerts_as_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # JS-5
    looked = list[list[WaitingGroup]]()
    waiting = PilotScheduler.waiting

    def counted(meta: PilotScheduler) -> list[WaitingGroup]:
        looked.append(waiting(meta))
        return looked[-1]

    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=0)
        for gpus in range(1, 12):
            task = JobActivity(name=f"t{gpus}", command="true", resources=ResourceTemplates(gpus=gpus))
            await start(one, task)
        await keep_running(pilot, 100)
        assert len(await open_alerts(cluster)) == 11
        monkeypatch.setattr(PilotScheduler, "waiting", counted)
        await one.do(one.runtime.monitor.look())
        assert len(looked) == 1

    run(story)
