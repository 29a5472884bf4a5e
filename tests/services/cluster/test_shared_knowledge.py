"""What is everybody's is known to everybody: rules, flows, how far a case has come, notices; and who speaks for a
foreign engine."""

import asyncio

import pytest

from mendflow.core.model.errors import Unreachable
from mendflow.core.model.flow import JobActivity, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionEvent, ExceptionType, Primitive
from mendflow.core.model.sources import SourceSpec
from mendflow.services.base.cluster_terms import cluster_terms
from mendflow.services.cluster.progress import INTERVAL_MS
from tests.services.cluster.kit import LEASE_MS, Cluster, ServerProcess, pilot_of, run
from tests.services.recovery.kit import FAILED, exlet, flow, mend, rule_set

TERMS = cluster_terms(LEASE_MS)
TWO = flow(Sequence(name="s", body=(JobActivity(name="a", command="true"), JobActivity(name="b", command="true"))))
FORCE = exlet("force", mend(Primitive.COMPLETE, outputs={"n": 1}))


async def put(server: ServerProcess, type: ExceptionType) -> None:
    await server.runtime.exceptions.rules.put(rule_set("f", type, ("true", "force"), exlets=[FORCE]), author="test")
    await server.runtime.ledger.settled()


def test_a_rule_that_is_added_on_one_server_decides_about_the_next_failure_on_another() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await two.do(two.domain.deploy(TWO))
        case = (await two.do(two.domain.start("f", {}, who="me"))).id
        pilot = pilot_of(cluster, "two")
        await pilot.sync(want=1)
        await one.do(put(one, ExceptionType.ABORT))  # and no time for a beat
        await pilot.sync(a=FAILED)

        async def goes_on() -> bool:
            await pilot.sync(want=1)
            return [str(each.spec.item) for each in pilot.held] == ["b"]

        await cluster.until(goes_on, "job b, because the rule has completed a")
        assert await cluster.home(case) == "two"

    run(story)


def test_a_rule_of_any_type_holds_on_other_servers_after_two_beats() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(put(one, ExceptionType.ITEM_PRE))
        await asyncio.sleep(3 * TERMS.beat_ms / 1000)
        assert ExceptionType.ITEM_PRE in two.runtime.exceptions.rules.types_by_flow["f"]

    run(story)


def test_a_flow_that_is_deployed_on_one_server_starts_on_another() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(TWO))
        await asyncio.sleep(3 * TERMS.beat_ms / 1000)
        case = (await two.do(two.domain.start("f", {}, who="me"))).id
        assert await cluster.home(case) == "two"

    run(story)


def test_how_far_a_case_has_come_is_seen_on_other_servers_after_a_few_seconds() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(TWO))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=1)
        await pilot.sync(a=Outcome())
        await asyncio.sleep(2 * INTERVAL_MS / 1000)
        seen = {each.name: each.done for each in (await two.do(two.domain.case(case))).counts}
        assert seen["a"] == 1
        before = await cluster.store.get("case", case)
        await asyncio.sleep(4 * INTERVAL_MS / 1000)
        assert await cluster.store.get("case", case) == before  # nothing moved, so nothing is written

    run(story)


def test_notices_of_all_servers_are_in_one_list() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        for server, words in ((one, "first"), (two, "second"), (one, "third"), (two, "fourth")):
            server.runtime.notices.post(words)
            await server.do(server.runtime.ledger.settled())
        told = await one.do(one.domain.notices())
        assert [each.message for each in told] == ["fourth", "third", "second", "first"]
        assert [each.serial for each in told] == [4, 3, 2, 1]

    run(story)


def test_a_source_that_one_server_registers_is_known_to_the_next() -> None:  # EX-6
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        source = SourceSpec(name="stock", kind="http", address="https://example.org/", secret="hush")
        await one.do(one.domain.put_rule_source(source, who="ann"))
        await asyncio.sleep(3 * TERMS.beat_ms / 1000)
        rules = rule_set("f", ExceptionType.ABORT, ("sources.stock", "force"), exlets=[FORCE])
        assert two.runtime.recovery.sources.unknown(rules) == []

    run(story)


def test_a_foreign_engine_is_served_where_it_is_at_home_and_by_the_next_when_that_is_dead() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.runtime.engines.register("other", who="them"))
        await one.do(one.runtime.ledger.settled())
        await asyncio.sleep(3 * TERMS.beat_ms / 1000)
        event = ExceptionEvent(id="e-1", type=ExceptionType.ABORT, case=CaseId("their case"), flow="theirs")
        with pytest.raises(Unreachable):
            await two.do(two.runtime.engines.tell("other", event, who="them"))
        one.kill()
        await cluster.until_home("other", "two")
        assert await two.do(two.runtime.engines.tell("other", event, who="them")) is False

    run(story)
