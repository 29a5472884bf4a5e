"""Files come into sets, and cases follow: at once, gathered, at the close, and after the sets before."""

from collections.abc import AsyncIterator

import pytest

from mendflow.core.model.data_sets import Gathering
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, Input
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import FileRef
from mendflow.services.cases.live_case import CaseDocument
from tests.services.data_sets.kit import EACH, MERGE, cases_of, catalogued, logical, names_in, wish
from tests.services.recovery.kit import FAILED, World

FOR_EACH = Gathering(name="each", flow="each", count=1)
BY_TWO = Gathering(name="merge", flow="merge", count=2)
AT_END = Gathering(name="all", flow="merge")


async def deployed(world: World) -> None:
    await world.domain.deploy(EACH)
    await world.domain.deploy(MERGE)


async def started(world: World, count: int, flow: str = "") -> list[CaseDocument]:
    async def enough() -> list[CaseDocument]:
        await world.runtime.ledger.settled()
        found = await cases_of(world.store, flow)
        return found if len(found) >= count else []

    found: list[CaseDocument] = await world.until(enough, f"{count} cases")
    await world.quiet()
    found = await cases_of(world.store, flow)
    assert len(found) == count
    return found


async def until_state(world: World, name: str, state: str) -> None:
    async def reached() -> bool:
        return (await world.runtime.data_sets.view(name)).state == state

    await world.until(reached, f"{name} {state}")


async def test_a_file_in_the_catalogue_starts_a_case_at_once(world: World) -> None:  # PJ-9
    await deployed(world)
    await world.runtime.data_sets.define(wish(FOR_EACH), who="me")
    await world.runtime.data_sets.added(logical("a"))
    await world.runtime.data_sets.added(logical("a"))
    [case] = await started(world, 1)
    assert (case.flow, case.owner, names_in(case)) == ("each", "me", ["a"])
    [batch] = await world.runtime.data_sets.batches("raw")
    assert (batch.case, batch.status, batch.why) == (case.id, "running", "count")


async def test_a_file_that_nobody_told_of_is_found_in_the_catalogue(world: World) -> None:  # PJ-9
    await deployed(world)
    await catalogued(world.store, logical("a"), logical("elsewhere", "other"))
    await world.runtime.data_sets.define(wish(AT_END), who="me")
    await world.runtime.data_sets.close("raw", who="me")
    [case] = await started(world, 1)
    assert names_in(case) == ["a"]


async def test_files_are_gathered_and_the_rest_goes_with_the_close(world: World) -> None:  # PJ-9
    await deployed(world)
    sets = world.runtime.data_sets
    await sets.define(wish(BY_TWO), who="me")
    for name in "abc":
        await sets.added(logical(name))
    [first] = await started(world, 1)
    assert names_in(first) == ["a", "b"]
    view = await sets.view("raw")
    assert (view.files, view.state, view.gatherings[0].waiting_files) == (3, "open", 1)
    await sets.close("raw", who="me")
    assert sorted(map(names_in, await started(world, 2))) == [["a", "b"], ["c"]]
    await catalogued(world.store, logical("d", ""))
    with pytest.raises(Conflict, match="is closed"):
        await sets.arrived("raw", ["/store/d"])


async def test_what_waits_too_long_is_handed_on(world: World) -> None:
    await deployed(world)
    await world.runtime.data_sets.define(wish(Gathering(name="soon", flow="merge", wait_ms=50)), who="me")
    await world.runtime.data_sets.added(logical("a"))
    [case] = await started(world, 1)
    assert names_in(case) == ["a"]
    [batch] = await world.runtime.data_sets.batches("raw")
    assert batch.why == "time"


async def test_a_set_closes_by_itself_when_all_before_it_is_done(world: World) -> None:  # PJ-9
    await deployed(world)
    sets = world.runtime.data_sets
    await sets.define(wish(FOR_EACH), who="me")
    await sets.define(wish(AT_END, name="merged", after=("raw",)), who="me")
    await sets.added(logical("a"))
    await started(world, 1)
    await sets.close("raw", who="me")
    [item] = await world.take()
    await sets.added(logical("out", "merged"))  # as the catalogue tells before the case hears that its job is over
    assert (await sets.view("merged")).waits_for == ["batch each/1 of data set raw is running"]
    await world.report(**{item: Outcome()})
    await started(world, 1, "merge")
    await until_state(world, "raw", "over")
    assert (await sets.view("merged")).state == "closed"
    [item] = await world.take()
    await world.report(**{item: Outcome()})
    await until_state(world, "merged", "over")


async def test_a_batch_that_failed_keeps_those_after_it_open_until_it_is_tried_again(world: World) -> None:
    await deployed(world)
    sets = world.runtime.data_sets
    await sets.define(wish(FOR_EACH), who="me")
    await sets.define(wish(AT_END, name="merged", after=("raw",)), who="me")
    await sets.added(logical("a"))
    await sets.close("raw", who="me")
    [first] = await started(world, 1)
    [item] = await world.take()
    await world.report(**{item: FAILED})

    async def told() -> bool:
        [reason] = (await sets.view("merged")).waits_for
        return "mendflow data sets retry raw each/1" in reason

    await world.until(told)
    assert (await sets.view("merged")).state == "open"
    again = await sets.retry("raw", "each", 1, who="me")
    assert (again.attempt, again.status) == (2, "waiting")
    both = await started(world, 2)
    [second] = [case for case in both if case.id != first.id]
    assert (second.rerun_of, second.inputs) == (first.id, first.inputs)
    document = await world.runtime.manager.document(second.id)
    assert document is not None and document.stands_for == first.id, "it takes up what the first failed by"
    [item] = await world.take()
    await world.report(**{item: Outcome()})
    await until_state(world, "merged", "over")


async def test_files_that_come_after_the_close_are_told_of(world: World) -> None:
    sets = world.runtime.data_sets
    await sets.define(wish(), who="me")
    await sets.close("raw", who="me")
    await sets.added(logical("late"))
    assert (await sets.view("raw")).late == 1
    told = await world.domain.notices()
    assert "data set raw is closed, and 1 more files came: /store/late" in told[0].message


async def test_files_in_keeping_and_in_the_catalogue_can_be_told_by_a_call(world: World) -> None:
    await deployed(world)
    sets = world.runtime.data_sets
    await sets.define(wish(FOR_EACH), who="me")
    await catalogued(world.store, logical("a"))
    with pytest.raises(NotFound, match="no file"):
        await sets.arrived("raw", ["lfn:/store/b"])
    with pytest.raises(NotFound, match="upload it first"):
        await sets.arrived("raw", [FileRef(sha256="0" * 64, bytes=3, name="x")])
    kept = await world.domain.store_file("k.txt", _chunks())
    await sets.arrived("raw", ["lfn:/store/a", kept])
    cases = await started(world, 2)
    assert {case.inputs["file"]["name"] for case in cases} == {"a", "k.txt"}


async def _chunks() -> AsyncIterator[bytes]:
    yield b"abc"


async def test_a_gathering_for_a_flow_that_it_does_not_fit_is_refused(world: World) -> None:
    sets = world.runtime.data_sets
    with pytest.raises(NotFound):
        await sets.define(wish(FOR_EACH), who="me")
    await deployed(world)
    with pytest.raises(InvalidRequest, match="has no input 'files'"):
        await sets.define(wish(Gathering(name="g", flow="each", count=2)), who="me")
    both = Flow(name=FlowName("both"), inputs={"file": Input(required=True), "n": Input(required=True)}, body=EACH.body)
    await world.domain.deploy(both)
    with pytest.raises(InvalidRequest, match="wants the input 'n'"):
        await sets.define(wish(Gathering(name="g", flow="both", count=1)), who="me")
    with pytest.raises(NotFound, match="no data set"):
        await sets.view("raw")


async def test_a_batch_that_cannot_become_a_case_says_why(world: World) -> None:
    await deployed(world)
    sets = world.runtime.data_sets
    rule = Gathering(name="g", flow="each", count=1, inputs={"file": "${{ batch.nothing }}"})
    await sets.define(wish(rule), who="me")
    await sets.added(logical("a"))

    async def told() -> str:
        [batch] = await sets.batches("raw")
        return batch.problem

    assert "nothing" in await world.until(told)


async def test_sets_go_on_when_the_house_was_built_anew(world: World) -> None:
    await deployed(world)
    await world.runtime.data_sets.define(wish(BY_TWO), who="me")
    await world.runtime.data_sets.added(logical("a"))
    await world.restart()
    await world.runtime.data_sets.added(logical("b"))
    [case] = await started(world, 1)
    assert names_in(case) == ["a", "b"]


async def test_sets_that_come_after_each_other_in_a_circle_are_refused(world: World) -> None:
    sets = world.runtime.data_sets
    await sets.define(wish(name="x", after=("y",)), who="me")
    await sets.define(wish(name="y", after=("z",)), who="me")
    with pytest.raises(InvalidRequest, match="in a cycle: z after x after y after z"):
        await sets.define(wish(name="z", after=("x",)), who="me")
    await sets.define(wish(name="z"), who="me")
