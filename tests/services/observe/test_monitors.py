"""What monitors tell of: once for each episode, by one server, with what to do; and it is closed when it is over."""

import asyncio

import msgspec

from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import JobActivity, Sequence
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Limits, Measurements, Outcome
from mendflow.core.model.templates import ResourceTemplates
from mendflow.services.base.alerts import AlertDocument, AlertRaised
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.observe.runtimes import estimate_ms
from tests.services.cluster.kit import Cluster, ServerProcess, keep_running, pilot_of, run
from tests.services.recovery.kit import flow

MINUTE_S = 60.0


async def alerts(cluster: Cluster) -> list[AlertDocument]:
    return [msgspec.json.decode(each.body, type=AlertDocument) async for each in cluster.store.scan("alert")]


async def until_alert(cluster: Cluster, kind: str, *, open: bool = True) -> AlertDocument:
    async def raised() -> AlertDocument | None:
        found = [each for each in await alerts(cluster) if each.kind == kind and each.open is open]
        return found[0] if found else None

    found = await cluster.until(raised, kind, within_s=600)
    assert isinstance(found, AlertDocument)
    return found


async def start(server: ServerProcess, *jobs: JobActivity) -> str:
    await server.do(server.domain.deploy(flow(Sequence(name="s", body=jobs))))
    return (await server.do(server.domain.start("f", {}, who="me"))).id


def test_a_job_that_runs_far_longer_than_expected_is_told_once_and_closed_at_its_end() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        case = await start(one, JobActivity(name="a", command="true", expected_ms=30_000))
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=1)
        await keep_running(pilot, 80)
        assert await alerts(cluster) == [], "it is over what was expected, and not yet by the factor"
        await keep_running(pilot, 60)
        [alert] = await alerts(cluster)
        assert (alert.id, alert.case, alert.item) == (f"long-job/{case}/1/1", case, "a")
        assert "30 s were expected" in alert.sentence and f"mendflow admin requeue {case}/1" in alert.sentence
        await keep_running(pilot, 60)
        assert len(await alerts(cluster)) == 1, "once"
        await pilot.exchange({"a": Outcome()})
        closed = await until_alert(cluster, "long-job", open=False)
        assert closed.closed_at > closed.raised_at

    run(story)


def test_a_job_that_is_over_its_time_and_silent_is_an_orphan_until_its_lease_gives_it_back() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one", lease_ms=60_000)
        case = await start(one, JobActivity(name="a", command="true", expected_ms=10_000))
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=1)
        await keep_running(pilot, 65)
        alert = await until_alert(cluster, "orphan")
        assert alert.subject == f"{case}/1" and "was not heard for" in alert.sentence
        await until_alert(cluster, "orphan", open=False)
        [job] = await cluster.jobs(case)
        assert (job.losses, job.history[-1].end) == (1, "lost")

    run(story)


def test_what_jobs_of_a_name_usually_take_is_learned_and_holds_on_every_server() -> None:  # JS-5, JS-6
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        pilot = pilot_of(cluster, "one")
        quick = Outcome(measures=Measurements(ran_ms=20_000))
        await start(one, JobActivity(name="a", command="true"))
        for _ in range(5):
            await one.do(one.domain.start("f", {}, who="me"))
        await pilot.run_all(lambda _: quick)
        await asyncio.sleep(15)
        assert await two.do(two.runtime.monitor.runtimes.expected_ms("f", "a")) == 20_000
        other = pilot_of(cluster, "two", pilot="p-2")
        case = (await two.do(two.domain.start("f", {}, who="me"))).id
        await other.sync(want=1)
        await keep_running(other, 90)
        alert = await until_alert(cluster, "long-job")
        assert alert.subject == f"{case}/1" and "20 s were expected" in alert.sentence

    run(story)


def test_a_few_that_hung_move_the_estimate_little() -> None:
    assert estimate_ms([100] * 20) == 100
    assert estimate_ms([90, 100, 110] * 10 + [100_000, 1]) == 140


def test_a_dead_server_is_told_by_one_of_those_that_see_it_and_closed_when_it_is_back() -> None:  # JS-4, JS-5
    async def story(cluster: Cluster) -> None:
        one, _, _ = await cluster.start("one", "two", "three")
        one.kill()
        alert = await until_alert(cluster, "server-gone")
        await asyncio.sleep(MINUTE_S)
        assert len(await alerts(cluster)) == 1
        assert alert.subject == "one" and alert.raised_by in ("two", "three")
        await cluster.start("one")
        await until_alert(cluster, "server-gone", open=False)
        assert len(await alerts(cluster)) == 1

    run(story)


def test_a_pilot_that_is_gone_without_a_word_is_told_and_one_that_left_is_not() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        await cluster.start("one", "two")
        polite, rude = pilot_of(cluster, "one", pilot="polite"), pilot_of(cluster, "one", pilot="rude")
        await polite.sync()
        await rude.sync()
        await polite.sync(leaving=True)
        alert = await until_alert(cluster, "pilot-gone")
        await asyncio.sleep(MINUTE_S)
        assert [each.subject for each in await alerts(cluster)] == ["rude"]
        assert "start the pilot again" in alert.sentence
        await keep_running(rude, 15)
        assert [each.open for each in await alerts(cluster)] == [False], "it is back"
        await asyncio.sleep(MINUTE_S)
        assert [each.open for each in await alerts(cluster)] == [False, True], "the next time is another episode"

    run(story)


def test_a_pilot_whose_server_died_with_it_is_told_once_by_all_who_knew_it() -> None:  # JS-4, JS-5
    async def story(cluster: Cluster) -> None:
        one, two, three = await cluster.start("one", "two", "three")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        await asyncio.sleep(5)  # until the others have read what all share
        for server in (two, three):
            await server.do(server.domain.start("f", {}, who="me"))
        pilot = pilot_of(cluster, "one")

        async def lent() -> bool:
            await pilot.sync(want=2, wait_ms=100)
            return len(pilot.held) == 2

        await cluster.until(lent)
        await pilot.sync()
        one.kill()
        await asyncio.sleep(2 * MINUTE_S)
        assert sorted(each.kind for each in await alerts(cluster)) == ["pilot-gone", "server-gone"]

    run(story)


def test_a_queue_that_only_grows_is_told_once_and_closed_when_it_drains() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        for _ in range(40):
            await one.do(one.domain.start("f", {}, who="me"))
            await asyncio.sleep(2.5)
        [alert] = await alerts(cluster)
        assert alert.kind == "queue-grows" and "no pilot that is here could take them" in alert.sentence
        await pilot_of(cluster, "one").run_all(lambda _: Outcome())
        await until_alert(cluster, "queue-grows", open=False)

    run(story)


def test_a_level_that_fills_is_told() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one", levels_ms=(3_600_000,))
        case = await start(one, JobActivity(name="a", command="true"))
        for turn in range(150):
            levels, id = one.runtime.levels, JobId(f"{case}/1")
            await one.do(levels.enter(f"{case}/{turn}", level=1, job=id, case=CaseId(case), item=ItemId("a")))
            await asyncio.sleep(1)
        alert = await until_alert(cluster, "level-fills")
        assert "mendflow rules levels drain 1" in alert.sentence

    run(story)


def test_two_servers_that_look_at_the_same_time_raise_one_alert() -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        one, two, three = await cluster.start("one", "two", "three")
        told: list[str] = []
        for server in (two, three):
            server.runtime.hub.subscribe(AlertRaised, lambda raised: told.append(raised.alert.id))
        one.kill()
        await until_alert(cluster, "server-gone")
        await asyncio.gather(*(server.do(server.runtime.monitor.look()) for server in (two, three)))
        assert len(told) == 1

    run(story)


def test_an_alert_is_acknowledged_by_a_person_and_what_may_stay_for_ever_is_over_then() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        one.kill()
        alert = await until_alert(cluster, "server-gone")
        view = await two.do(two.runtime.monitor.acknowledge(alert.id, who="ann"))
        assert (view.acknowledged_by, bool(view.closed_at)) == ("ann", True)
        await asyncio.sleep(MINUTE_S)
        assert len(await alerts(cluster)) == 1, "not raised again"
        try:
            await two.do(two.runtime.monitor.acknowledge("no/such/alert", who="ann"))
        except RequestError as mistake:
            assert "mendflow alerts" in mistake.message
        else:
            raise AssertionError("there is no such alert")

    run(story)


def test_a_server_that_may_not_promise_raises_nothing_from_what_it_remembers() -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two", lease_ms=300_000)
        case = await start(one, JobActivity(name="a", command="true", expected_ms=10_000))
        pilot = pilot_of(cluster, "one", "two")
        await pilot.sync(want=1)
        assert isinstance(one.server.membership, ServerMembership)
        monitor = one.runtime.monitor
        await one.server.membership.drop()  # its beats end, and it goes on
        await cluster.until_home(case, "two")
        pilot.domain = pilot_of(cluster, "two").domain
        await pilot.exchange({"a": Outcome()})
        await asyncio.sleep(2 * MINUTE_S)
        await one.do(monitor.look())
        assert {each.kind for each in await alerts(cluster)} == {"server-gone"}
        assert two.server.health().status == "ok"

    run(story)


def test_a_job_that_waits_for_a_limit_that_nobody_has_set_is_told_until_it_is_set() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        case = await start(one, JobActivity(name="a", command="true", limits=Limits(named=(("licences", 1),))))
        await asyncio.sleep(30)
        assert await alerts(cluster) == [], "whoever started it may be about to set it"
        alert = await until_alert(cluster, "limit-unset")
        assert (alert.subject, alert.case, alert.item) == ("licences", case, "a")
        assert "'a' waits for limit 'licences', which nobody has set" in alert.sentence
        assert "mendflow limits set licences COUNT" in alert.sentence
        await asyncio.sleep(60)
        assert len(await alerts(cluster)) == 1, "once"
        await one.do(one.runtime.limits.set("licences", 1, who="me"))
        await until_alert(cluster, "limit-unset", open=False)

    run(story)


def test_a_job_that_no_pilot_could_take_is_told_until_one_could() -> None:  # JS-5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=0)
        case = await start(one, JobActivity(name="a", command="true", resources=ResourceTemplates(gpus=1)))
        await keep_running(pilot, 40)
        assert await alerts(cluster) == [], "a pilot may be about to come"
        await keep_running(pilot, 60)
        [alert] = await alerts(cluster)
        assert (alert.kind, alert.case, alert.item) == ("no-pilot", case, "a")
        assert "'a' waits, and would do so for ever: no pilot can take it: it asks for 1 gpu" in alert.sentence
        assert f"mendflow cancel {case}" in alert.sentence
        await keep_running(pilot, 60)
        assert len(await alerts(cluster)) == 1, "once"
        await one.do(one.domain.cancel(case, who="me"))
        closed = await until_alert(cluster, "no-pilot", open=False)
        assert closed.closed_at > closed.raised_at

    run(story)
