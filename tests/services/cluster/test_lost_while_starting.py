"""A server is lost while it begins a case: whoever was told yes has a case that runs, and nobody else has one."""

import asyncio
from collections.abc import Callable, Coroutine
from collections.abc import Sequence as Many
from typing import Any

import msgspec
import pytest

from mendflow.core.model.errors import (
    Conflict,
    NotFound,
    QuotaExceeded,
    RequestError,
    StoreUnavailable,
    TemporarilyUnavailable,
)
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.projects import ProjectSettings, Quotas
from mendflow.services.base.cluster import CASE_KIND, HOME_KIND
from mendflow.services.base.cluster_terms import cluster_terms
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.cluster.takeover import FULL_SCAN_TERMS
from mendflow.stores.contract import Append, Put, Write, WriteConflict, WriteDone
from tests.services.cluster.kit import LEASE_MS, TRAVEL_S, Cluster, ServerProcess, pilot_of, run
from tests.services.recovery.kit import flow

ONE = flow(JobActivity(name="a", command="true"))
KEY = "monday"
TERMS = cluster_terms(LEASE_MS)
LONG_S = 4 * TERMS.takeover_ms / 1000
FOUND_S = (FULL_SCAN_TERMS + 2) * TERMS.takeover_ms / 1000
"""Within this time somebody has looked at all homes."""

PIECES = ("its home", "its document", "its first entry", "the answer")


def of_beginning(write: Write) -> bool:
    is_journal = isinstance(write, Append) and write.stream.startswith("case/")
    return is_journal or (isinstance(write, Put) and write.kind in (HOME_KIND, CASE_KIND))


def piece_by_piece(server: ServerProcess, cluster: Cluster, happen: Callable[[], None], at: int) -> asyncio.Event:
    """Let what this server writes of a new case reach the store one by one, and let something happen when it has
    decided to write the piece of this number and has not done so."""
    happened, passed = asyncio.Event(), 0

    async def write(writes: Many[Write]) -> list[WriteDone | WriteConflict]:
        nonlocal passed
        results: list[WriteDone | WriteConflict] = []
        for each in writes:
            if of_beginning(each):
                if passed == at and not happened.is_set():
                    happened.set()
                    happen()
                    await asyncio.sleep(TRAVEL_S)
                passed += 1
            results += await cluster.store.write([each])
        await asyncio.sleep(TRAVEL_S)
        if passed == at == len(PIECES) - 1 and not happened.is_set():
            happened.set()
            happen()
            await asyncio.sleep(TRAVEL_S)
        return results

    server.line.write = write  # type: ignore[method-assign]  # the same, in pieces
    return happened


async def told(server: ServerProcess) -> str:
    """The case that this server says is the client's; empty if it says nothing of the kind."""
    try:
        return str((await server.do(server.domain.start("f", {}, who="me", key=KEY), patience_s=120)).id)
    except (RequestError, TimeoutError):
        return ""


async def until_told(cluster: Cluster, server: ServerProcess, within_s: float = FOUND_S) -> str:
    async def asked() -> str:
        return await told(server)

    return str(await cluster.until(asked, "a yes", within_s))


async def documents(cluster: Cluster) -> list[CaseDocument]:
    return [msgspec.json.decode(found.body, type=CaseDocument) async for found in cluster.store.scan(CASE_KIND)]


async def demand_one_case(cluster: Cluster, case: str, *servers: str) -> None:
    """It runs to its end; whatever else was begun under the key never did, and nothing is left of that."""
    pilot = pilot_of(cluster, *servers)

    async def ended() -> bool:
        await pilot.run_all(lambda _: Outcome())
        return (await cluster.document(case)).status == "completed"

    await cluster.until(ended, f"the end of {case}")
    others = [document for document in await documents(cluster) if document.id != case]
    assert all(document.void and document.status == "cancelled" and not document.key for document in others)

    async def homeless() -> bool:
        return [found.id async for found in cluster.store.scan(HOME_KIND)] == []

    await cluster.until(homeless, "the end of all homes", FOUND_S)


def begun_on_one(*names: str) -> Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]:
    def play(story: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
        async def whole(cluster: Cluster) -> None:
            one, *_ = await cluster.start(*names)
            await one.do(one.domain.deploy(ONE))
            await story(cluster)

        run(whole)

    return play


@pytest.mark.parametrize("at", range(len(PIECES)), ids=PIECES)
def test_a_server_that_sleeps_before_any_write_of_a_beginning_says_yes_only_to_what_runs(at: int) -> None:  # law 1
    @begun_on_one("one", "two")
    async def story(cluster: Cluster) -> None:
        one, two = cluster.servers["one"], cluster.servers["two"]
        asleep = piece_by_piece(one, cluster, one.process.stop, at)
        asking = asyncio.get_running_loop().create_task(told(one))
        await asleep.wait()
        await asyncio.sleep(LONG_S)
        one.process.resume()
        yes = await asking
        case = await until_told(cluster, two)
        assert yes in ("", case)
        assert await until_told(cluster, one) == case
        await demand_one_case(cluster, case, "two", "one")


@pytest.mark.parametrize("at", range(len(PIECES)), ids=PIECES)
def test_a_server_that_dies_before_any_write_of_a_beginning_leaves_the_key_to_others(at: int) -> None:  # law 1
    @begun_on_one("one", "two")
    async def story(cluster: Cluster) -> None:
        one, two = cluster.servers["one"], cluster.servers["two"]
        dead = piece_by_piece(one, cluster, one.process.kill, at)
        asking = asyncio.get_running_loop().create_task(told(one))
        await dead.wait()
        await demand_one_case(cluster, await until_told(cluster, two), "two")
        assert await asking == ""


@pytest.mark.parametrize("ends", ("sleeps", "dies"))
@pytest.mark.parametrize("at", range(len(PIECES)), ids=PIECES)
def test_a_beginning_that_is_lost_keeps_nothing_of_a_quota_of_one_case(at: int, ends: str) -> None:  # law 1, SE-6
    @begun_on_one("one", "two")
    async def story(cluster: Cluster) -> None:
        one, two = cluster.servers["one"], cluster.servers["two"]
        bound = ProjectSettings(quotas=Quotas(cases=1))
        await one.do(one.domain.set_project(DEFAULT_PROJECT, bound, who="root"))

        async def is_known() -> bool:
            return bool((await two.do(two.domain.project(DEFAULT_PROJECT))).settings == bound)

        await cluster.until(is_known, "the quota at the other server")
        lost = piece_by_piece(one, cluster, one.process.kill if ends == "dies" else one.process.stop, at)
        asking = asyncio.get_running_loop().create_task(told(one))
        await lost.wait()
        if ends == "sleeps":
            await asyncio.sleep(LONG_S)
            one.process.resume()
        case = await until_told(cluster, two)
        yes = await asking
        assert yes in ("", case)
        with pytest.raises(QuotaExceeded):
            await two.do(two.domain.start("f", {}, who="me"))
        await demand_one_case(cluster, case, "two", *(() if ends == "dies" else ("one",)))

        async def is_free() -> bool:
            return (await two.do(two.domain.project(DEFAULT_PROJECT))).used.cases == 0

        await cluster.until(is_free, "the end of all holds", FOUND_S)


@pytest.mark.parametrize("at", range(6))
def test_a_taker_that_dies_while_it_settles_what_never_began_leaves_that_to_the_next(at: int) -> None:  # law 1
    @begun_on_one("one", "two", "three")
    async def story(cluster: Cluster) -> None:
        one, two, three = (cluster.servers[name] for name in ("one", "two", "three"))
        asleep = piece_by_piece(one, cluster, one.process.stop, at=2)
        asking = asyncio.get_running_loop().create_task(told(one))
        await asleep.wait()
        three.process.stop()
        writes = 0

        async def doomed(given: Many[Write]) -> None:
            nonlocal writes
            writes += any(of_beginning(write) for write in given)
            if writes > at:
                two.kill()

        two.line.before = doomed
        await asyncio.sleep(LONG_S)
        three.process.resume()
        await asyncio.sleep(LONG_S)
        one.process.resume()
        yes, case = await asking, await until_told(cluster, three)
        assert yes in ("", case)
        await demand_one_case(cluster, case, "three", "one")


def test_a_name_that_is_asked_for_while_its_home_is_being_taken_is_not_claimed_beside_that() -> None:
    @begun_on_one("one", "two")
    async def story(cluster: Cluster) -> None:
        one, two = cluster.servers["one"], cluster.servers["two"]
        dead = piece_by_piece(one, cluster, one.process.kill, at=1)
        asking = asyncio.get_running_loop().create_task(told(one))
        await dead.wait()
        taking, claiming = asyncio.Event(), asyncio.Event()

        async def together(writes: Many[Write]) -> None:
            for write in writes:
                if isinstance(write, Put) and write.kind == HOME_KIND:
                    (taking if write.expected else claiming).set()
                    if write.expected:
                        await asyncio.wait([asyncio.ensure_future(claiming.wait())], timeout=20 * TRAVEL_S)

        two.line.before = together
        runtime = two.runtime
        await taking.wait()
        case = await until_told(cluster, two)
        assert two.runtime is runtime  # and nothing had to be read again
        await demand_one_case(cluster, case, "two")
        assert await asking == ""


def test_a_case_that_is_being_begun_elsewhere_is_told_only_when_its_journal_has_begun() -> None:  # law 1
    @begun_on_one("one", "two")
    async def story(cluster: Cluster) -> None:
        one, two = cluster.servers["one"], cluster.servers["two"]
        asleep = piece_by_piece(one, cluster, one.process.stop, at=2)
        asking = asyncio.get_running_loop().create_task(told(one))
        await asleep.wait()
        [half] = await documents(cluster)
        assert half.key == KEY and half.live
        before = asyncio.get_running_loop().create_task(two.do(two.domain.start("f", {}, who="me", key=KEY)))
        await asyncio.sleep(0.5)
        assert not before.done()  # it waits for what becomes of it
        one.process.resume()
        assert await before is not None and (await before).id == await asking == half.id


@pytest.mark.parametrize(("alone", "kind"), [(True, CASE_KIND), (False, CASE_KIND), (False, HOME_KIND)])
@pytest.mark.parametrize(("late_s", "asked_s"), [(0.1, 0.2), (2.0, 0.0), (2.0, 3.0)])
def test_what_came_through_after_it_was_given_up_is_run_or_never_was(
    late_s: float, asked_s: float, alone: bool, kind: str
) -> None:
    async def story(cluster: Cluster) -> None:  # law 1
        [one] = await cluster.start("one", alone=alone)
        await one.do(one.domain.deploy(ONE))
        late: list[asyncio.Task[Any]] = []

        async def arrives(writes: Many[Write]) -> None:
            await asyncio.sleep(late_s)
            await cluster.store.write(writes)

        async def given_up(writes: Many[Write]) -> None:
            if not late and any(isinstance(write, Put) and write.kind == kind for write in writes):
                late.append(cluster.loop.create_task(arrives(writes)))
                raise StoreUnavailable("nobody knows what became of it")

        one.line.before = given_up
        assert await told(one) == ""
        await asyncio.sleep(asked_s)
        case = await until_told(cluster, one)
        await late[0]
        assert await until_told(cluster, one) == case
        await demand_one_case(cluster, case, "one")

    run(story)


@pytest.mark.parametrize("alone", (True, False))
def test_a_case_that_is_at_home_here_and_not_in_memory_is_told_only_when_it_is_taken_up(alone: bool) -> None:  # law 1
    async def story(cluster: Cluster) -> None:
        given_up: list[Write] = []

        async def keep(writes: Many[Write]) -> None:
            given_up.extend(write for write in writes if of_beginning(write) and write not in given_up)

        twin = Cluster(cluster.loop)  # the same names, and the same documents, on another store
        for each in (twin, cluster):
            [one] = await each.start("one", alone=alone)
            await one.do(one.domain.deploy(ONE))
            one.line.before = keep if each is twin else None
            if each is twin:
                assert await told(one)
        wanted = [write for write in given_up if not isinstance(write, Put) or not write.expected]
        assert {type(result) for result in await cluster.store.write(wanted)} == {WriteDone}
        await demand_one_case(cluster, await until_told(cluster, one), "one")

    run(story)


def test_whoever_looks_at_a_case_that_never_began_is_told_so() -> None:
    @begun_on_one("one", "two")
    async def story(cluster: Cluster) -> None:
        one, two = cluster.servers["one"], cluster.servers["two"]
        dead = piece_by_piece(one, cluster, one.process.kill, at=1)
        asking = asyncio.get_running_loop().create_task(told(one))
        await dead.wait()
        case = await until_told(cluster, two)
        await asking
        [void] = [document.id for document in await documents(cluster) if document.void]
        view = await two.do(two.domain.case(void))
        assert view.status == "cancelled" and view.fault is not None and "never began" in view.fault.message
        assert view.flow == "f"
        assert [entry.what for entry in await two.do(two.domain.history(void))] in ([], ["moved"])
        assert (await two.do(two.domain.case("last"))).id == case
        assert [each.id for each in await two.do(two.domain.cases())] == [case]
        assert (await two.do(two.domain.count_cases())).counts == {"": 1}
        with pytest.raises(NotFound, match="never began"):
            await two.do(two.domain.rerun(void, who="me"))
        with pytest.raises((Conflict, NotFound, TemporarilyUnavailable)):
            await two.do(two.domain.suspend(void, who="me"))
