"""What people do about exceptions: they raise them, mend what nobody foresaw, and reject what was chosen wrongly."""

import pytest

from mendflow.cli.repairs import decided_text
from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.flow import Call, Flow, Input, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import DecisionView, RejectRequest, RepairRequest, RuleSpec
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.services.api.domain import Domain
from tests.services.test_repairs import TOUCH, decided


def triggered(name: str) -> RuleSet:
    rule = Rule(id=1, condition='trigger == "rain"', exlet="touch", note="It rains.")
    return RuleSet(
        name=name, trees={ExceptionType.CASE_EXTERNAL: {"": RuleTree({1: rule}, 1)}}, exlets={"touch": TOUCH}
    )


async def waiting_case(domain: Domain) -> str:
    await domain.deploy(
        Flow(name=FlowName("show"), body=UserTask(name="play", role="band"), inputs={"touched": Input()})
    )
    return (await domain.start("show", {}, who="me")).id


async def settled(domain: Domain, id: str) -> DecisionView:
    while (found := await domain.decision(id)).state == "running":
        await domain._server.clock.sleep(5)
    return found


async def test_what_the_rules_know_is_listed_and_raised(domain: Domain) -> None:
    # EX-9
    await domain.put_rules(triggered("show"), who="ann")
    case = await waiting_case(domain)
    [trigger] = await domain.triggers(case)
    assert (trigger.trigger, trigger.level, trigger.rules) == ("rain", "case", "show")
    raised = await domain.raise_trigger("last", "rain", who="bob", data={"mm": 3})
    assert (raised.exlet, raised.rules) == ("touch", "show")
    assert (await settled(domain, raised.id)).state == "done"
    exlets = [each for each in await domain.cases() if each.mends == case]
    assert [each.decision for each in exlets] == [raised.id]
    assert (await domain.case("last")).id == case


async def test_an_unexpected_exception_suspends_the_case_until_somebody_mends_it(domain: Domain) -> None:
    # EX-9
    await domain.put_rules(triggered("show"), who="ann")
    case = await waiting_case(domain)
    raised = await domain.raise_trigger(case, "flood", who="bob")
    assert raised.state == "waiting"
    assert (await domain.case(case)).status == "suspended"
    assert any("flood" in notice.message for notice in await domain.notices())
    with pytest.raises(InvalidRequest, match="say what is to be done"):
        await domain.mend(case, RepairRequest(), who="ann")
    mended = await domain.mend(
        case, RepairRequest(exlet="touch", condition='trigger == "flood"', note="a boat"), who="ann"
    )
    assert (mended.id, (await settled(domain, mended.id)).state) == (raised.id, "done")
    assert (await domain.case(case)).status == "running"
    assert {each.trigger for each in await domain.triggers(case)} == {"rain", "flood"}
    assert (await domain.raise_trigger(case, "flood", who="bob")).exlet == "touch"


async def test_why_says_what_a_suspended_case_waits_for_and_that_its_items_stand_still(domain: Domain) -> None:
    # EX-9
    case = await waiting_case(domain)
    await domain.raise_trigger(case, "flood", who="bob")
    told = await domain.why(case)
    assert told.state == "suspended"
    assert told.sentence.startswith(f"case {case} is suspended: 'flood' was raised and no rule knows it.")
    assert told.sentence.endswith(f" `mendflow mend {case} --exlet EXLET` mends it.")
    within = f"its case is suspended, so nothing new begins in it: `mendflow why {case}` says why"
    assert within in (await domain.why(f"{case}:play")).facts


async def test_the_history_tells_what_was_raised_when_it_was_and_the_repair_when_it_began(domain: Domain) -> None:
    # EX-9
    await domain.put_rules(triggered("show"), who="ann")
    case = await waiting_case(domain)
    raised = await domain.raise_trigger(case, "flood", who="bob")
    while domain._server.clock.now() <= raised.at:
        await domain._server.clock.sleep(1)
    mended = await domain.mend(case, RepairRequest(exlet="touch", condition='trigger == "flood"'), who="ann")
    await settled(domain, mended.id)
    told = await domain.history(case)
    said, decision = (next(each for each in told if each.what == what) for what in ("raised", "decided"))
    assert (said.at, said.source, said.by) == (raised.at, "person", "bob")
    assert said.message == "'flood' was raised; no rule knew it: the case was suspended, and the administrator told"
    assert (decision.by, decision.at > raised.at) == ("show v2 rule 2", True)
    assert told.index(said) < told.index(decision)


async def test_a_repair_that_somebody_ordered_names_him_and_no_rule(domain: Domain) -> None:
    # EX-9
    await domain.put_rules(triggered("show"), who="ann")
    case = await waiting_case(domain)
    ordered = await domain.mend(case, RepairRequest(exlet="touch"), who="ann")
    assert (ordered.rule, ordered.rules, ordered.ordered_by) == (None, "", "ann")
    assert decided_text(ordered).startswith(f"{case}: touch ordered by ann")
    await settled(domain, ordered.id)
    decision = next(each for each in await domain.history(case) if each.what == "decided")
    assert decision.by == "ann"
    [group] = await domain.failures()
    assert [(each.rules, each.exlet) for each in group.handled] == [("", "touch")]
    assert [each.version for each in await domain.rule_versions("show")] == [1]


async def test_a_group_that_waits_is_mended_by_a_rule_that_is_applied_now(domain: Domain) -> None:
    # EX-9
    await domain.put_rules(triggered("show"), who="ann")
    cases = [await waiting_case(domain) for _ in range(2)]
    waiting = [await domain.raise_trigger(case, "flood", who="bob") for case in cases]
    group = waiting[0].group
    assert (await domain.failure(group)).group.waiting == 2
    assert (await domain.apply_rules(group, who="ann")).taken_up == []
    await domain.add_rule(RuleSpec(condition='trigger == "flood"', exlet="touch", group=group), who="ann")
    applied = await domain.apply_rules(group, who="ann")
    assert set(applied.taken_up) == {each.id for each in waiting}
    for each in waiting:
        assert (await settled(domain, each.id)).state == "done"
    assert {(await domain.case(case)).status for case in cases} == {"running"}


async def test_what_people_say_has_happened_is_grouped_by_what_they_say(domain: Domain) -> None:
    # EX-9
    for said in ("flood", "quake", "flood"):
        await domain.raise_trigger(await waiting_case(domain), said, who="bob")
    groups = {group.message: group.count for group in await domain.failures()}
    assert groups == {"flood": 2, "quake": 1}


async def test_a_worklet_that_was_chosen_wrongly_is_rejected_and_replaced(domain: Domain) -> None:
    # EX-8
    for name in ("tent", "hall"):
        await domain.deploy(Flow(name=FlowName(name), body=UserTask(name=f"go-to-{name}", role="band")))
    await domain.deploy(Flow(name=FlowName("show"), body=Call(name="venue")))
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="tent")}, 1)
    await domain.put_rules(RuleSet(name="show", trees={ExceptionType.SELECTION: {"venue": tree}}), who="ann")
    case = (await domain.start("show", {}, who="me")).id
    while not (offered := await domain.worklist(state="offered")):
        await domain._server.clock.sleep(5)
    assert str(offered[0].item) == "go-to-tent"
    chosen = (await decided(domain, case))["venue"]
    assert (chosen.type, chosen.exlet) == (ExceptionType.SELECTION, "tent")
    rejected = await domain.reject_choice(RejectRequest(decision=chosen.id, exlet="hall", note="it rains"), who="bob")
    assert rejected.state == "rejected"
    while [str(task.item) for task in await domain.worklist(state="offered")] != ["go-to-hall"]:
        await domain._server.clock.sleep(5)
    assert (await domain.case(case)).status == "running"
    view = await domain.rule_set("show")
    assert (view.version, view.decided) == (1, {"selection/venue/1": 1}), "the rule is as it was, and chose once"
    with pytest.raises(Conflict, match="nothing to reject"):
        await domain.reject_choice(RejectRequest(decision=chosen.id, exlet="tent"), who="bob")


async def test_mending_with_steps_of_its_own_makes_one_version_that_says_what_was_added(domain: Domain) -> None:
    # EX-9
    case = await waiting_case(domain)
    for _ in range(2):
        mended = await domain.mend(case, RepairRequest(exlet="dry-up", flow=TOUCH), who="ann")
        assert (await settled(domain, mended.id)).state == "done"
    assert [view.note for view in await domain.rule_versions("show")] == [f"exlet dry-up made for {case}"]
    wish = RepairRequest(exlet="wring", flow=TOUCH, condition='trigger == "flood"')
    await domain.raise_trigger(case, "flood", who="bob")
    mended = await domain.mend(case, wish, who="ann")
    newest, first = await domain.rule_versions("show")
    assert (newest.note, first.version) == (f"rule {mended.rule} added: wring", 1), "rule and exlet are one change"
