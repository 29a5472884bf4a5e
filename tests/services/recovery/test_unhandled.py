"""Failures that no rule takes up: the case is held for a person where its flow, its caller or the server says so, and a
case that failed by one goes on later, also after a crash."""

from collections.abc import AsyncIterator, Collection
from collections.abc import Sequence as Writes
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import Conflict
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Activity,
    Call,
    Catch,
    Empty,
    Flow,
    ForEach,
    JobActivity,
    Parallel,
    Scope,
    Sequence,
    Throw,
    UnhandledPolicy,
)
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.repair_views import RuleSpec
from mendflow.core.model.rules import RuleSet
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

OK = Outcome()
A = JobActivity(name="a", command="run a")
IN_ORDER = Sequence(name="s", body=(A, JobActivity(name="b", command="run b")))
AT_ONCE = Parallel(name="p", branches=(A, JobActivity(name="b", command="run b")))
CAUGHT = Scope(name="scope", body=A, catches=(Catch(body=Empty(name="nothing")),))
INNER = flow(A, "inner")
CALLING = Call(name="call", flow="inner")
CANCELLED = Outcome(fault=Fault(name="cancelled", category=Category.CANCELLED, message="somebody wanted its end"))
MENDED = exlet("mended", mend(Primitive.RESUBMIT, env={"MENDED": "yes"}))
TRY_AGAIN = exlet("try-again", mend(Primitive.RESUBMIT))
USELESS = exlet("useless", mend(Primitive.NOTIFY, message="it is hopeless"))
SHIPPED = RuleSet(name="*", exlets={"try-again": TRY_AGAIN})


async def world_of(tmp_path: Path, *, holds: bool = False) -> World:
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, holds_unhandled=holds), shipped=SHIPPED)
    await made.server.open()
    return made


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = await world_of(tmp_path)
    yield made
    await made.server.close()


@pytest.mark.parametrize(
    ("body", "says", "server", "outcome", "status"),
    [
        (A, "", False, FAILED, "failed"),
        (A, "hold", False, FAILED, "held"),
        (A, "", True, FAILED, "held"),
        (A, "fail", True, FAILED, "failed"),
        (CAUGHT, "hold", False, FAILED, "completed"),
        (A, "hold", False, CANCELLED, "failed"),
        (CALLING, "hold", False, FAILED, "held"),
        (CALLING, "", True, FAILED, "held"),
        (CALLING, "fail", True, FAILED, "failed"),
    ],
)
async def test_a_failure_that_nobody_takes_up_is_held_where_somebody_said_so(
    body: Activity, says: str, server: bool, outcome: Outcome, status: str, tmp_path: Path
) -> None:
    # DU-7
    world = await world_of(tmp_path, holds=server)
    case = await world.start(flow(body, calls=(INNER,), on_unhandled=says))
    await world.take()
    await world.report(a=outcome)
    if status == "held":
        assert (await world.case(case)).held
        assert (await world.domain.why(case)).state in ("held", "running")
        [held] = world.runtime.exceptions.held_failures()
        assert held.item == "a"
    else:
        await world.until_status(case, status)
        assert not world.runtime.exceptions.held_failures()
    await world.server.close()


@pytest.mark.parametrize(
    ("body", "flow_says", "inner_says", "person_says", "status"),
    [
        (A, "hold", "", "fail", "failed"),
        (A, "fail", "", "hold", "held"),
        (CALLING, "hold", "hold", "fail", "failed"),
        (CALLING, "fail", "fail", "hold", "held"),
        (CALLING, "hold", "fail", "", "held"),
    ],
)
async def test_what_is_said_for_a_run_comes_before_what_its_flows_say(
    body: Activity,
    flow_says: UnhandledPolicy,
    inner_says: UnhandledPolicy,
    person_says: UnhandledPolicy,
    status: str,
    world: World,
) -> None:
    inner = msgspec.structs.replace(INNER, on_unhandled=inner_says)
    await world.domain.deploy(flow(body, calls=(inner,), on_unhandled=flow_says))
    case = (await world.domain.start("f", {}, who="me", on_unhandled=person_says)).id
    await world.take()
    await world.report(a=FAILED)
    if status == "held":
        await world.quiet()
        assert (await world.case(case)).held
    else:
        await world.until_status(case, status)


async def test_a_failure_whose_repair_did_not_help_is_held_too(world: World) -> None:
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "useless"), exlets=[USELESS]))
    case = await world.start(flow(A, on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(case, "waiting")
    assert (await world.case(case)).held == [f"{case}:a"]
    alone = await world.domain.item(case, "a")
    listed = [each.held for each in await world.domain.items(case) if each.item == "a"]
    assert (alone.held, listed) == (True, [True]), "nobody has to read a sentence for it"


async def test_a_repair_by_hand_that_did_not_help_is_over_when_its_case_waits_again(world: World) -> None:
    case = await world.start(flow(A, on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(case, "waiting")
    await world.runtime.administration.mend(case, exlet="mended", steps=MENDED, who="ada")
    await world.take()
    await world.report(a=FAILED)
    await world.quiet()
    tried, waits = await world.decisions(case)
    assert (tried.state, tried.result, waits.state) == ("done", "failed", "waiting")
    history = await world.domain.history(case)
    told = [(each.by, each.what, each.message) for each in history if each.source == "service"]
    assert ("ada", "tried in vain", "mended: failed") in told
    assert told[-1][2].endswith("ada did mended once, without success, and it waits for a person")
    assert not [each for each in told if "under way" in each[2]]


async def test_a_called_case_that_failed_is_held_as_a_job_is(world: World) -> None:
    inner = Flow(name=FlowName("inner"), body=A, on_unhandled="fail")
    case = await world.start(flow(Call(name="c", flow="inner"), calls=(inner,), on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(case, "waiting")
    [listed], alone = await world.domain.items(case), await world.domain.item(case, "c")
    assert listed.held and alone.held
    assert listed.why.startswith("it failed, and waits for a person: ")
    assert listed.fault == alone.fault is not None


async def test_what_waits_for_a_person_and_has_not_failed_does_not_say_so(world: World) -> None:
    case = await world.start(flow(A))
    await world.domain.raise_trigger(case, "storm", "a", who="me")
    await world.quiet()
    [listed] = await world.domain.items(case)
    assert (listed.held, listed.fault) == (True, None)
    assert "it failed" not in listed.why


@pytest.mark.parametrize("how", ["resume", "mend", "rule", "cancel"])
@pytest.mark.parametrize("crash", [False, True])
async def test_a_held_case_goes_on_as_a_person_says_also_after_a_crash(how: str, crash: bool, world: World) -> None:
    # DU-7
    case = await world.start(flow(IN_ORDER, on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    held = await world.until_decided(case, "waiting")
    if crash:
        await world.restart()
    assert (await world.case(case)).held == [f"{case}:a"]
    if how == "cancel":
        await world.domain.cancel(case, who="me")
        await world.until_status(case, "cancelled")
        return
    if how == "resume":
        await world.domain.resume(case, who="me")
    elif how == "mend":
        await world.runtime.administration.mend(case, exlet="mended", steps=MENDED, who="me")
    else:
        await world.domain.add_rule(RuleSpec(decision=held.id, condition="true", exlet="mended", flow=MENDED), who="me")
        [group] = await world.domain.failures()
        assert (await world.domain.apply_rules(group.id, who="me")).taken_up == [held.id]
    assert await world.take() == ["a"]
    await world.report(a=OK)
    assert await world.take() == ["b"]
    await world.report(b=OK)
    await world.until_status(case, "completed")
    assert not world.runtime.exceptions.held_failures()


async def test_what_is_mended_while_rules_are_applied_is_refused_by_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # EX-7
    held = []
    for _ in range(3):
        case = await world.start(flow(A, on_unhandled="hold"))
        await world.take()
        await world.report(a=FAILED)
        held.append(await world.until_decided(case, "waiting"))
    await world.domain.add_rule(RuleSpec(decision=held[0].id, condition="true", exlet="mended", flow=MENDED), who="me")
    administration = world.runtime.administration
    apply, asked = administration.apply, list[str]()

    async def apply_after_somebody_else(
        decision: str, *, who: str = "", task_roles: Collection[str] | None = None
    ) -> Decision | None:
        if not asked:  # of the others, one is tried again by hand meanwhile
            other = next(each for each in held if each.id != decision)
            await administration.retry(other.id, who="ann")
        asked.append(decision)
        return await apply(decision, who=who, task_roles=task_roles)

    monkeypatch.setattr(administration, "apply", apply_after_somebody_else)
    [group] = await world.domain.failures()
    result = await world.domain.apply_rules(group.id, who="me")
    assert len(asked) == 3 and len(result.taken_up) == 2
    [(refused, why)] = result.refused.items()
    assert refused in {each.id for each in held} and "does not wait" in why


async def failed_case(world: World, body: Activity, *, first: str = "a") -> tuple[str, str]:
    """A case that failed, and the group of its failure."""
    case = await world.start(flow(body))
    await world.take(items=2 if body is AT_ONCE else 1)
    await world.report(**{first: FAILED})
    await world.until_status(case, "failed")
    [group] = await world.domain.failures()
    return case, group.id


@pytest.mark.parametrize("crash", [False, True])
async def test_a_case_that_failed_goes_on_by_a_rule_that_was_made_since(crash: bool, world: World) -> None:
    # DU-7
    case, group = await failed_case(world, IN_ORDER)
    nothing = await world.domain.apply_rules(group, who="me")
    assert (nothing.cases, nothing.taken_up, [*nothing.why_left.values()]) == ([], [], ["no-rule"])
    await world.domain.add_rule(RuleSpec(group=group, condition="true", exlet="mended", flow=MENDED), who="me")
    applied = await world.domain.apply_rules(group, who="me")
    assert (applied.cases, len(applied.taken_up), applied.refused) == ([case], 1, {})
    if crash:
        await world.restart()
    assert await world.take() == ["a"]
    assert world.pilot.held[0].spec.env["MENDED"] == "yes"
    await world.report(a=OK)
    await world.take()
    await world.report(b=OK)
    await world.until_status(case, "completed")
    told = [entry.what for entry in await world.domain.history(case)]
    assert told.index("reopened") < told.index("decided", told.index("reopened")) < told.index("repaired")
    [item] = await world.domain.items(case, state="completed", limit=1)
    assert item.item == "a"


class CountingStore(MemoryStore):
    calls = 0

    async def write(self, writes: Writes[Write]) -> list[WriteDone | WriteConflict]:
        self.calls += 1
        return await super().write(writes)


async def test_a_case_with_many_items_is_reopened_with_few_writes(tmp_path: Path) -> None:
    store = CountingStore()
    world = World(store, tmp_path, ServerSettings(files_roots=None), shipped=SHIPPED)
    await world.server.open()
    case = await world.start(flow(ForEach(name="each", first=1, last=300, body=A)))
    first, *_ = await world.take()
    await world.report(**{first: FAILED})
    await world.until_status(case, "failed")
    await world.runtime.ledger.settled()
    before = store.calls
    await world.runtime.recovery.reopener.reopen(case, who="me")
    assert store.calls - before < 30
    assert (await world.case(case)).status == "running"
    assert len(await world.take(items=299)) == 299, "all but the failed one, which waits"
    await world.server.close()


async def test_what_was_cancelled_with_the_case_begins_again_and_is_listed_once(world: World) -> None:
    case, group = await failed_case(world, AT_ONCE)
    applied = await world.domain.apply_rules(group, who="me", retry=True)
    assert applied.cases == [case]
    assert await world.take(items=2) == ["a", "b"]
    await world.report(a=OK, b=OK)
    await world.until_status(case, "completed")
    assert [(item.item, item.state) for item in await world.domain.items(case)] == [
        ("a", "completed"),
        ("b", "completed"),
    ]


async def test_a_case_that_fails_again_can_be_reopened_again(world: World) -> None:
    case, group = await failed_case(world, A)
    for _ in range(2):
        await world.domain.apply_rules(group, who="me", retry=True)
        await world.take()
        await world.report(a=FAILED)
        await world.until_status(case, "failed")
    await world.domain.apply_rules(group, who="me", retry=True)
    await world.take()
    await world.report(a=OK)
    await world.until_status(case, "completed")
    assert len({(each.at, each.id) for each in await world.decisions(case)}) == len(await world.decisions(case))


TIDY = Sequence(name="h", body=(JobActivity(name="tidy", command="tidy up"), Throw(name="t", fault="again")))
TIDIED = Scope(name="scope", body=A, catches=(Catch(body=TIDY),))


async def test_a_case_that_cannot_go_on_is_refused_with_the_reason(world: World) -> None:
    case = await world.start(flow(TIDIED))
    await world.take()
    await world.report(a=FAILED)
    await world.take()
    await world.report(tidy=OK)
    await world.until_status(case, "failed")
    [group] = await world.domain.failures()
    applied = await world.domain.apply_rules(group.id, who="me", retry=True)
    assert applied.cases == []
    [reason] = [why for failure, why in applied.refused.items() if failure.startswith(f"{case}/")]
    assert "has gone on after its failure" in reason
    assert await world.status(case) == "failed"


async def test_a_case_that_is_not_over_is_not_reopened(world: World) -> None:
    case = await world.start(flow(A))
    with pytest.raises(Conflict, match="is not over"):
        await world.runtime.recovery.reopener.reopen(case, who="me")
    done: Flow = flow(Empty(name="nothing"), "done")
    over = await world.start(done)
    with pytest.raises(Conflict, match="has not failed"):
        await world.runtime.recovery.reopener.reopen(over, who="me")


async def test_se_1_what_is_tried_again_by_resuming_ends_what_that_person_may_end(world: World) -> None:
    case = await world.start(flow(IN_ORDER, on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    held = await world.until_decided(case, "waiting")
    await world.domain.resume(case, who="olga", task_roles=frozenset({"clerk"}))
    assert (await world.runtime.exceptions.decisions.get(held.id)).task_roles == ["clerk"]
