"""Several servers start what is due, are lost at every step, stop and go on, and have clocks that jump: no due time is
missed, and none is started twice."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.flow_triggers import FlowTriggers, Overlap, ScheduleTrigger
from mendflow.core.model.ids import CaseId
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.views import CaseQuery
from mendflow.services.schedules.store import SCHEDULE_KIND
from mendflow.stores.contract import Append, Put, Write
from tests.services.cluster.kit import Cluster, ServerProcess, run
from tests.services.schedules.kit import EVERY_MINUTE, FLOW, MINUTE, cases_of, schedule_in, work

NAMES = ("A", "B", "C")
ALL = replace(EVERY_MINUTE, catch_up="all", overlap="allow")


async def scheduled(cluster: Cluster, spec: ScheduleSpec = EVERY_MINUTE) -> list[ServerProcess]:
    servers = await cluster.start(*NAMES)
    first = servers[0]
    await first.do(first.domain.deploy(FLOW))
    await first.do(first.domain.put_schedule(spec, who="ann"))
    return servers


async def dues(cluster: Cluster) -> list[str]:
    """The due times of all cases; each is in its inputs and in its key."""
    cases = await cases_of(cluster.store)
    found = [str(case.inputs["at"]) for case in cases]
    assert [case.key.rpartition("/")[2] for case in cases] == found
    return found


def assert_no_gap(found: Sequence[str], count: int) -> None:
    assert len(found) >= count, found
    assert max(Counter(found).values()) == 1, found
    minutes = [int(each[11:13]) * 60 + int(each[14:16]) for each in found]
    assert minutes == list(range(minutes[0], minutes[0] + len(minutes))), found


def test_of_three_servers_one_starts_each_due_time() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        await scheduled(cluster)
        working = asyncio.create_task(work(cluster, *NAMES))
        await asyncio.sleep(5 * 60)
        working.cancel()
        found = await dues(cluster)
        assert_no_gap(found, 4)
        document = await schedule_in(cluster.store)
        assert [each.what for each in document.history] == ["started"] * len(found)
        assert document.starting == () and document.owner == "ann"

    run(story)


def _decides(writes: Sequence[Write]) -> bool:
    return any(isinstance(each, Put) and each.kind == SCHEDULE_KIND and b'"starting"' in each.body for each in writes)


def _begins(writes: Sequence[Write]) -> bool:
    return any(isinstance(each, Append) and each.stream.startswith("case/") for each in writes)


def _notes(writes: Sequence[Write]) -> bool:
    puts = [each for each in writes if isinstance(each, Put) and each.kind == SCHEDULE_KIND]
    return any(b'"started"' in each.body and b'"starting"' not in each.body for each in puts)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("moment", [_decides, _begins, _notes])
def test_a_due_time_whose_server_is_lost_is_started_by_another(
    moment: Callable[[Sequence[Write]], bool], after: bool
) -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        servers = await scheduled(cluster, ALL)
        lost: list[str] = []

        def trap(server: ServerProcess) -> None:
            async def dies(writes: Sequence[Write]) -> None:
                if not lost and moment(writes):
                    lost.append(server.name)
                    if after:  # the write arrives, and its answer does not
                        await cluster.store.write(writes)
                    server.kill()
                    await asyncio.sleep(1)

            server.line.before = dies

        for server in servers:
            trap(server)
        await asyncio.sleep(4 * 60)
        assert lost
        assert_no_gap(await dues(cluster), 3)

    run(story)


def test_a_server_that_stops_in_the_middle_and_goes_on_much_later_starts_nothing_again() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        servers = await scheduled(cluster, ALL)
        stopped: list[ServerProcess] = []

        def trap(server: ServerProcess) -> None:
            async def stops(writes: Sequence[Write]) -> None:
                if not stopped and (_decides(writes) or _begins(writes)):
                    stopped.append(server)
                    server.process.stop()
                    await asyncio.sleep(0)

            server.line.before = stops

        for server in servers:
            trap(server)
        await asyncio.sleep(3 * 60)
        stopped[0].process.resume()
        await asyncio.sleep(2 * 60)
        assert_no_gap(await dues(cluster), 4)

    run(story)


@pytest.mark.full
def test_clocks_that_jump_forward_catch_up_as_told_and_those_that_jump_back_start_nothing_again() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        servers = await scheduled(cluster)
        working = asyncio.create_task(work(cluster, *NAMES))
        await asyncio.sleep(2 * 60)
        before = await dues(cluster)
        for server in servers:
            server.wall_shift_ms = 60 * MINUTE
        await asyncio.sleep(2 * 60)
        forward = await dues(cluster)
        assert len(before) + 2 <= len(forward) <= len(before) + 4
        for server in servers:
            server.wall_shift_ms = 0
        await asyncio.sleep(10 * 60)
        assert await dues(cluster) == forward
        first = servers[0]
        view = await first.do(first.domain.schedule("tick"))
        assert "a server's clock was ahead" in view.problem
        told = await first.do(first.domain.why("tick"))
        assert "a server's clock was ahead" in told.facts[0]
        await first.do(first.domain.resume_schedule("tick", who="ann"))
        await asyncio.sleep(2 * 60 + 5)
        working.cancel()
        assert len(await dues(cluster)) in (len(forward) + 2, len(forward) + 3)

    run(story)


@pytest.mark.full
def test_servers_whose_clocks_differ_start_each_time_once() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        servers = await scheduled(cluster, ALL)
        for server, shift in zip(servers, (-20_000, 0, 20_000), strict=True):
            server.wall_shift_ms = shift
        await asyncio.sleep(5 * 60)
        assert_no_gap(await dues(cluster), 4)

    run(story)


@pytest.mark.full
@pytest.mark.parametrize("overlap", ["wait", "skip", "replace"])
def test_cases_that_must_not_overlap_do_not(overlap: Overlap) -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        await scheduled(cluster, ScheduleSpec(name="tick", flow="nightly", cron="* * * * *", overlap=overlap))
        working = asyncio.create_task(work(cluster, *NAMES, takes_s=130))
        for _ in range(60):
            await asyncio.sleep(10)
            live = [case for case in await cases_of(cluster.store) if case.live]
            assert len(live) <= 1
        working.cancel()
        statuses = Counter(case.status for case in await cases_of(cluster.store))
        words = Counter(each.what for each in (await schedule_in(cluster.store)).history)
        assert words["started"] >= 3
        assert (statuses["cancelled"] >= 2) is (overlap == "replace")
        assert (words["overlapped"] >= 2) is (overlap in ("wait", "skip")), words

    run(story)


@pytest.mark.full
def test_a_flow_that_is_deployed_with_a_schedule_has_one_until_it_is_deployed_without() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        first, second, _ = await cluster.start(*NAMES)
        trigger = ScheduleTrigger(cron="* * * * *", inputs={"at": "${{ schedule.time }}"}, overlap="allow")
        flow = replace(FLOW, triggers=FlowTriggers(schedule=trigger))
        await first.do(first.domain.deploy_with_triggers(flow, who="ann"))
        await asyncio.sleep(2 * 60 + 5)
        assert_no_gap(await dues(cluster), 2)
        await second.do(second.domain.pause_schedule("nightly", who="ann"))
        await first.do(first.domain.deploy_with_triggers(flow, who="ann"))  # and it stays paused
        assert (await schedule_in(cluster.store, "nightly")).spec.paused
        with pytest.raises(Conflict, match="belongs to flow nightly"):
            await second.do(second.domain.remove_schedule("nightly", who="ann"))
        await second.do(second.domain.resume_schedule("nightly", who="ann"))
        await second.do(second.domain.deploy_with_triggers(FLOW, who="ann"))
        assert await first.do(first.domain.schedules()) == []
        count = len(await dues(cluster))
        await asyncio.sleep(3 * 60)
        assert len(await dues(cluster)) == count

    run(story)


@pytest.mark.parametrize("remove", [False, True])
def test_a_crash_between_the_triggers_of_a_flow_and_its_schedule_is_put_right(remove: bool) -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        first, second, _ = await cluster.start(*NAMES)
        flow = replace(FLOW, triggers=FlowTriggers(schedule=ScheduleTrigger(cron="* * * * *")))
        if remove:
            await first.do(first.domain.deploy_with_triggers(flow, who="ann"))

        async def dies(writes: Sequence[Write]) -> None:
            if any(getattr(each, "kind", "") == SCHEDULE_KIND for each in writes):
                first.kill()
                await asyncio.sleep(1)

        first.line.before = dies
        doing = (
            first.domain.remove_flow("nightly", who="ann")
            if remove
            else first.domain.deploy_with_triggers(flow, who="ann")
        )
        asking = asyncio.create_task(first.do(doing))

        async def right() -> bool:
            names = [each.spec.name for each in await second.do(second.domain.schedules())]
            return names == ([] if remove else ["nightly"]) and not first.process.alive

        await cluster.until(right, "the schedule as the triggers say", 60.0)
        asking.cancel()

    run(story)


@pytest.mark.full
def test_a_start_that_is_refused_is_an_alert_until_one_succeeds() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        first, *_ = await scheduled(cluster, ALL)
        await first.do(first.domain.remove_flow("nightly", who="ann"))

        async def raised() -> bool:
            found = await first.do(first.domain.alerts())
            return [each.kind for each in found if each.kind == "not-started"] == ["not-started"]

        await cluster.until(raised, "an alert", 150.0)
        view = await first.do(first.domain.schedule("tick"))
        assert "was refused" in view.problem and view.history[0].what == "refused"
        await first.do(first.domain.deploy(FLOW))

        async def closed() -> bool:
            return not [each for each in await first.do(first.domain.alerts()) if each.kind == "not-started"]

        await cluster.until(closed, "the end of the alert", 150.0)

    run(story)


@pytest.mark.full
def test_a_backfill_starts_what_has_no_case_yet_whoever_is_lost_meanwhile() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        first, second, _ = await scheduled(cluster, ALL)
        await asyncio.sleep(2 * 60 + 5)
        known = await dues(cluster)
        begin, end = _shifted(known[0], -60), known[-1]
        asked = await second.do(second.domain.backfill_schedule("tick", begin, end, who="bob", dry_run=True))
        assert len(asked.times) == 60 + len(known) and not asked.planned
        assert [each.text for each in asked.times if each.case] == known
        assert await dues(cluster) == known
        for _ in range(2):  # asked twice, started once
            await second.do(second.domain.backfill_schedule("tick", begin, end, who="bob"))
        await asyncio.sleep(0.5)
        first.kill()
        await asyncio.sleep(3 * 60)
        assert_no_gap(await dues(cluster), 62)
        with pytest.raises(InvalidRequest, match="still to come"):
            await second.do(second.domain.backfill_schedule("tick", "2031-01-01", "2031-01-02", who="bob"))
        with pytest.raises(InvalidRequest, match="no date or time"):
            await second.do(second.domain.backfill_schedule("tick", "yesterday", end, who="bob"))

    run(story)


def _shifted(text: str, minutes: int) -> str:
    return (datetime.fromisoformat(text) + timedelta(minutes=minutes)).isoformat()


def test_a_case_can_be_started_by_hand_and_counts_as_running() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        first, second, _ = await scheduled(cluster)
        with pytest.raises(InvalidRequest, match="has no input depth; its inputs are: at"):
            await first.do(first.domain.put_schedule(replace(EVERY_MINUTE, inputs={"depth": 3}), who="ann"))
        view = await second.do(second.domain.trigger_schedule("tick", who="bob", key="k"))
        again = await first.do(first.domain.trigger_schedule("tick", who="bob", key="k"))
        assert view.id == again.id and (view.owner, view.schedule) == ("bob", "tick")
        [found] = (await second.do(second.domain.find_cases(CaseQuery(where='text.contains("tick")')))).rows
        assert found.id == view.id
        document = await schedule_in(cluster.store)
        assert document.running == (CaseId(view.id),)
        assert [each.what for each in document.history] == ["triggered"]
        await asyncio.sleep(2 * 60)
        assert (await first.do(first.domain.schedule("tick"))).state == "waiting"
        told = await first.do(first.domain.why("tick"))
        assert view.id in told.sentence and "waits for" in told.sentence

    run(story)


def test_times_that_pass_while_no_server_runs_are_told_as_missed() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        servers = await scheduled(cluster)
        working = asyncio.create_task(work(cluster, *NAMES))
        await asyncio.sleep(2 * 60)
        for server in servers:
            await server.close()
        await asyncio.sleep(10 * 60)
        [again] = await cluster.start("D")
        await asyncio.sleep(30)
        working.cancel()
        history = (await schedule_in(cluster.store)).history
        missed = [each for each in history if each.what == "missed"]
        assert len(missed) == 1 and 8 <= missed[0].count <= 10
        assert history[-1].what == "started"
        told = await again.do(again.domain.why("tick"))
        assert any("passed while no server ran" in fact for fact in told.facts)

    run(story)


@pytest.mark.full
def test_a_server_that_starts_nothing_by_the_clock_holds_up_nobody() -> None:  # DU-6
    """As one that runs a single case: it may be the one that is chosen for a schedule, and leaves it to the others."""

    async def story(cluster: Cluster) -> None:
        servers = await scheduled(cluster)
        for server in servers[:2]:
            await server.do(server.runtime.schedules.stop())
        working = asyncio.create_task(work(cluster, *NAMES, takes_s=50))
        await asyncio.sleep(6 * 60)
        working.cancel()
        assert_no_gap(await dues(cluster), 4)

    run(story)


def test_a_server_that_starts_no_schedules_is_never_waited_for() -> None:  # DU-6
    """It is not among those that one is chosen from, so no due time is started late because of it."""

    async def story(cluster: Cluster) -> None:
        [serves] = await cluster.start("A")
        await cluster.start("B", schedules=False)
        await cluster.start("C", schedules=False)
        await serves.do(serves.domain.deploy(FLOW))
        names = [f"tick{number}" for number in range(8)]  # by chance, each may be that of any of the three
        for name in names:
            await serves.do(serves.domain.put_schedule(replace(ALL, name=name), who="ann"))
        await asyncio.sleep(3 * 60)
        for name in names:
            history = (await schedule_in(cluster.store, name)).history
            late_ms = [each.at - each.due for each in history]
            assert len(late_ms) >= 2 and max(late_ms) < 2_000, (name, late_ms)

    run(story)


def test_only_a_server_that_lives_and_starts_cases_at_due_times_serves_schedules() -> None:  # DU-6
    async def is_served(process: ServerProcess) -> bool:
        return not (await process.do(process.domain.schedule("tick"))).not_served

    async def story(cluster: Cluster) -> None:
        [serves] = await cluster.start("A")
        await serves.do(serves.domain.deploy(FLOW))
        await serves.do(serves.domain.put_schedule(EVERY_MINUTE, who="ann"))
        [first] = await cluster.start("B", schedules=False)
        assert await is_served(serves) and await is_served(first), "also before it was seen to beat"
        serves.kill()
        [second] = await cluster.start("C", schedules=False)
        assert [each.id for each in second.server.membership.live_servers()] == ["A", "B"], "nobody has closed it yet"
        assert not await is_served(second)
        await asyncio.sleep(20)
        assert not await is_served(first), "it starts none, nor does C"
        [found] = await first.do(first.domain.schedules())
        assert found.not_served

    run(story)
