"""Of failures one is told what is of one's projects: also where a failure is compared with another one, or with the
case that a rule was made for."""

import gzip
import json
from collections.abc import Awaitable
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import NotFound, RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.learning import Proposal, ProposalEvidence
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import DecisionView, RuleSpec
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.formats.shipped import default_rules
from mendflow.server.runner import HttpServer
from mendflow.services.learning.proposal_store import ProposalStore
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import do_jobs
from tests.server.people import As, KnownPeople
from tests.services.recovery.kit import exlet

ABORT = ExceptionType.ABORT
REDS_OWN = "make-reds-secret"


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


async def failed(people: As, who: str, flow: str, command: str, message: str) -> DecisionView:
    """The decision about a case that fails by a cause of its own."""
    body = JobActivity(name="work", command=command)
    await people(who).deploy(Flow(name=FlowName(flow), body=body))
    await people(who).start(flow)
    fault = Fault(name="exit", category=Category.JOB, message=message, exit_code=len(message))
    await do_jobs(people("root"), 1, fail=True, fault=fault)
    while not (found := await people(who).decisions()):
        pass
    return found[0]


@pytest.fixture
async def failures(people: As) -> tuple[DecisionView, DecisionView]:
    """One of red, which came last before, and one of blue. A rule that was made for no case decides about both."""
    rules = {1: Rule(id=1, condition="fault.exit_code > 0", exlet="look")}
    tree = RuleTree(rules, 1)
    await people("root").put_rules(
        RuleSet(name=DEFAULT_RULES, trees={ABORT: {"*": tree}}, exlets={"look": exlet("look")})
    )
    red = await failed(people, "ann", "reds", REDS_OWN, "the reds' own disk is full")
    return red, await failed(people, "boris", "blues", "make-blue", "blue licence missing")


def told(answer: object) -> str:
    return msgspec.json.encode(answer).decode()


async def refused(asked: Awaitable[object]) -> str:
    try:
        await asked
    except RequestError as error:
        assert REDS_OWN not in json.dumps([error.message, error.fields], default=str)
        return str(error.code)
    return "done"


async def test_ex_7_a_failure_is_compared_with_failures_that_one_sees(
    people: As, failures: tuple[DecisionView, DecisionView]
) -> None:
    red, blue = failures
    boris = people("boris")
    shown = await boris.failure(blue.group)
    assert shown.compared is not None
    assert (shown.compared.other, shown.compared.differences) == ("", [])
    by_decision, by_group = await boris.differences(decision=blue.id), await boris.differences(group=blue.group)
    for answer in (shown, by_decision, by_group, await boris.failure_values(blue.group)):
        assert REDS_OWN not in told(answer)
        assert red.case not in told(answer)
    whole = (await people("root").failure(blue.group)).compared
    assert whole is not None
    assert whole.other == red.id, "who sees both compares them"
    assert (await people("vera").failure(red.group)).compared == (await people("vera").differences(decision=red.id))


async def taught(people: As, red: DecisionView) -> None:
    """The rule of all is made for the case of red."""
    wish = RuleSpec(condition="fault.exit_code > 1", exlet="look", decision=red.id, rules=DEFAULT_RULES, type=ABORT)
    made = await people("root").add_rule(wish)
    assert "all projects" in made.warning
    assert made.rule == 2


async def test_ex_7_the_case_of_a_default_rule_is_for_those_who_see_its_project(
    people: As, failures: tuple[DecisionView, DecisionView]
) -> None:
    red, blue = failures
    await taught(people, red)
    for version in (None, 2):
        for name in ("boris", "clerk", "guest"):
            view = await people(name).rule_set(DEFAULT_RULES, version)
            assert REDS_OWN not in told(view), name
            assert view.hidden_cornerstones == ["abort/work/2"]
            assert view.rules is not None
            rule = view.rules.trees[ABORT]["work"].rules[2]
            assert (rule.condition, rule.cornerstone) == ("fault.exit_code > 1", None)
        for name in ("root", "ann", "vera"):
            view = await people(name).rule_set(DEFAULT_RULES, version)
            assert REDS_OWN in told(view), name
            assert view.hidden_cornerstones == []
    boris = people("boris")
    assert (await boris.failure(blue.group)).compared == (await boris.differences(decision=blue.id))
    assert (await boris.differences(decision=blue.id)).rule is None, "it is not compared with what it may not tell"
    with pytest.raises(NotFound, match="in a project that you do not see"):
        await boris.differences(decision=blue.id, rules=DEFAULT_RULES, rule=2, task="work")
    assert (await people("vera").differences(decision=red.id, rules=DEFAULT_RULES, rule=2, task="work")).rule == 2
    for answer in (await boris.failure(blue.group), await boris.trial_agreement(DEFAULT_RULES)):
        assert REDS_OWN not in told(answer)


async def test_ex_7_a_cornerstone_that_was_written_is_for_everybody(people: As) -> None:
    shown = default_rules()
    await people("root").put_rules(shown)
    view = await people("vera").rule_set(DEFAULT_RULES)
    assert view.rules is not None
    assert (view.rules.trees, view.hidden_cornerstones) == (shown.trees, [])
    assert any(each.cornerstone for each in shown.trees[ABORT]["*"].rules.values())


async def test_ex_7_the_case_of_a_default_rule_stays_hidden_when_it_is_gone(people: As) -> None:
    stone: dict[str, Value] = {
        "case": {"id": "gone-1", "flow": "gone"}, "event": {"id": "gone-1/1"}, "job": {"command": REDS_OWN}
    }  # fmt: skip
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="look", cornerstone=stone)}, 1)
    await people("root").put_rules(
        RuleSet(name=DEFAULT_RULES, trees={ABORT: {"*": tree}}, exlets={"look": exlet("look")})
    )
    for name in ("vera", "boris", "clerk"):
        assert (await people(name).rule_set(DEFAULT_RULES)).hidden_cornerstones == ["abort/*/1"]
    assert (await people("root").rule_set(DEFAULT_RULES)).hidden_cornerstones == []


async def test_ex_7_an_archive_has_no_case_of_a_project_that_one_does_not_see(
    people: As, failures: tuple[DecisionView, DecisionView], tmp_path: Path
) -> None:
    red, blue = failures
    await taught(people, red)
    for name, case, has in (("boris", blue.case, False), ("ann", red.case, True), ("root", blue.case, True)):
        await people(name).export(tmp_path / name, [case])
        whole = gzip.decompress((tmp_path / name).read_bytes()).decode()
        assert "fault.exit_code > 1" in whole
        assert (REDS_OWN in whole) == has, name


async def test_ex_7_a_rule_is_made_and_tried_for_what_one_sees(
    people: As, failures: tuple[DecisionView, DecisionView]
) -> None:
    red, blue = failures
    boris = people("boris")
    for wish in (
        RuleSpec(condition="true", exlet="look", decision=red.id, rules="blues"),
        RuleSpec(condition="true", exlet="look", group=red.group, rules="blues"),
        RuleSpec(condition="fault.exit_code < 0", exlet="look", decision=red.id, rules="blues"),
    ):
        assert await refused(boris.try_rule(wish)) == "not-found"
        assert await refused(boris.add_rule(wish)) == "not-found"
    wish = RuleSpec(condition="fault.exit_code > 1", exlet="look", decision=blue.id, rules="blues")
    assert (await boris.try_rule(wish)).looked_at == 1
    made = await boris.add_rule(wish)
    assert (made.rules, made.warning) == ("blues", "")
    assert (await boris.rule_set("blues")).hidden_cornerstones == []


async def test_ex_7_what_is_proposed_for_all_projects_is_for_administrators(
    people: As, failures: tuple[DecisionView, DecisionView], domain: DomainUnderTest
) -> None:
    evidence = ProposalEvidence(failures=2, cases=1, first_at=1, last_at=1, flows=["reds", "blues"], caught=2, of=2)
    kept = Proposal(
        id="ab12", kind="repair", state="open", at=1, sentence="try it", rules=DEFAULT_RULES, type=ABORT, task="*",
        condition="true", exlet="look", evidence=evidence, cornerstone={"job": {"command": REDS_OWN}},
    )  # fmt: skip
    await ProposalStore(domain._server.store).put(kept, states=("open",), now=1)
    for name in ("boris", "ann", "vera"):
        assert await refused(people(name).proposal("a")) == "not-found"
        assert await people(name).proposals() == []
    assert (await people("root").proposal("a")).cornerstone == kept.cornerstone
