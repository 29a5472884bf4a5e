"""Exlets that make no sense are refused: what cannot work where a rule concludes it, or after another step (EX-2)."""

import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Choose, Flow, PrimitiveStep, Sequence
from mendflow.core.model.flow import Branch as ChooseBranch
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import ExceptionType, Primitive, Target
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.recovery.exlet_checks import rule_set_problems, rule_set_warnings

SUSPEND, CONTINUE, REMOVE = Primitive.SUSPEND, Primitive.CONTINUE, Primitive.REMOVE
COMPLETE, FAIL, RESTART, WRITE = Primitive.COMPLETE, Primitive.FAIL, Primitive.RESTART, Primitive.WRITE
RESUBMIT, RESTAGE, LATER = Primitive.RESUBMIT, Primitive.RESTAGE, Primitive.RETRY_LATER
UNWIND, NOTIFY = Primitive.UNWIND, Primitive.NOTIFY


def step(do: Primitive, target: Target = "item", item: str = "", *, when: str = "") -> PrimitiveStep:
    settings = {"values": {"n": 1}} if do is WRITE else {}
    condition = Expr(when) if when else None
    return PrimitiveStep(name=f"{do.value}", do=do, target=target, item=item, settings=settings, when=condition)


def rules(type: ExceptionType, *steps: Activity) -> RuleSet:
    body = Sequence(name="steps", body=steps)
    exlet = Flow(name=FlowName("x"), exlet=True, body=body)
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="x")}, 1)
    case_level = type in (ExceptionType.CASE_PRE, ExceptionType.CASE_POST, ExceptionType.CASE_EXTERNAL)
    return RuleSet(name="f", trees={type: {"" if case_level else "a": tree}}, exlets={"x": exlet})


ORDER = [
    # what comes first, what comes after it, what is said (empty: it makes sense)
    ([step(REMOVE)], step(CONTINUE), "`remove` in step remove has ended the item"),
    ([step(REMOVE)], step(RESTART), "has ended the item"),
    ([step(REMOVE, "case")], step(CONTINUE, "case"), "has ended the case"),
    ([step(REMOVE, "case")], step(RESUBMIT), "has ended the case"),
    ([step(REMOVE, "case")], step(SUSPEND, "all-cases"), ""),
    ([step(REMOVE, "all-cases")], step(SUSPEND, "case"), "has ended all cases"),
    ([step(REMOVE, "all-cases")], step(SUSPEND, "ancestors"), ""),
    ([step(REMOVE, "ancestors")], step(WRITE, "case"), "has ended the cases above"),
    ([step(COMPLETE)], step(FAIL), "`force-complete` in step force-complete has ended the item"),
    ([step(FAIL)], step(COMPLETE), "`force-fail` in step force-fail has ended the item"),
    ([step(COMPLETE)], step(COMPLETE), "has ended the item"),
    ([step(COMPLETE)], step(RESTAGE), "has ended the item"),
    ([step(COMPLETE)], step(WRITE), "has ended the item"),
    ([step(COMPLETE)], step(WRITE, "case"), ""),
    ([step(COMPLETE)], step(COMPLETE, item="other"), ""),
    ([step(COMPLETE)], step(REMOVE, "case"), ""),
    ([step(COMPLETE, item="other")], step(RESTART), ""),
    ([step(COMPLETE)], step(NOTIFY), ""),
    ([step(COMPLETE)], step(UNWIND), ""),
    ([], step(CONTINUE), "no step before suspends the item"),
    ([step(SUSPEND)], step(CONTINUE, "case"), "no step before suspends the case"),
    ([step(SUSPEND, "case")], step(CONTINUE), "no step before suspends the item"),
    ([step(SUSPEND, "case")], step(CONTINUE, "all-cases"), "no step before suspends all cases"),
    ([step(SUSPEND, "all-cases")], step(CONTINUE, "case"), ""),
    ([step(SUSPEND, "case")], step(CONTINUE, "case"), ""),
    ([step(SUSPEND), step(CONTINUE)], step(CONTINUE), "no step before suspends the item"),
    ([step(SUSPEND)], step(SUSPEND), "step suspend has suspended the item already"),
    ([step(SUSPEND), step(CONTINUE)], step(SUSPEND), ""),
    ([step(SUSPEND)], step(RESTART), ""),
    ([step(RESTART)], step(RESTART), "runs again already"),
    ([step(RESUBMIT)], step(LATER), "runs again already, by `re-submit`"),
    ([step(RESUBMIT)], step(RESUBMIT, item="other"), ""),
    # what may have been skipped has ended nothing for certain
    ([step(COMPLETE, when="job.failures > 1")], step(RESTART), ""),
    ([step(RESUBMIT, when="job.failures > 1")], step(LATER, when="job.failures == 1"), ""),
    ([step(SUSPEND, when="job.failures > 1")], step(CONTINUE), ""),
    ([Choose(name="c", branches=(ChooseBranch(Expr("true"), step(REMOVE)),))], step(RESTART), ""),
    ([Sequence(name="inner", body=(step(REMOVE),))], step(RESTART), "has ended the item"),
]


@pytest.mark.parametrize(("before", "after", "said"), ORDER)
def test_ex_2_a_step_after_which_another_can_do_nothing_is_refused(
    before: list[Activity], after: Activity, said: str
) -> None:
    problems = rule_set_problems(rules(ExceptionType.ITEM_EXTERNAL, *before, after))
    assert [said in problem for problem in problems] == ([True] if said else []), problems


PLACES = [
    (ExceptionType.CASE_PRE, step(RESTART), "no item has begun"),
    (ExceptionType.CASE_PRE, step(RESTART, item="a"), "no item has begun"),
    (ExceptionType.CASE_PRE, step(RESUBMIT, item="a"), "no item has begun"),
    (ExceptionType.CASE_PRE, step(UNWIND), "has completed nothing"),
    (ExceptionType.CASE_PRE, step(REMOVE, "case"), ""),
    (ExceptionType.CASE_PRE, step(WRITE, "case"), ""),
    (ExceptionType.CASE_POST, step(COMPLETE, item="a"), "every item has ended"),
    (ExceptionType.CASE_POST, step(UNWIND), ""),
    (ExceptionType.CASE_POST, step(SUSPEND, "all-cases"), ""),
    (ExceptionType.CASE_EXTERNAL, step(FAIL), "there is no item at hand"),
    (ExceptionType.CASE_EXTERNAL, step(FAIL, item="a"), ""),
    (ExceptionType.ITEM_PRE, step(RESTART), "the item has not begun"),
    (ExceptionType.ITEM_PRE, step(LATER), "the item has not begun"),
    (ExceptionType.ITEM_PRE, step(RESTART, item="b"), ""),
    (ExceptionType.ITEM_PRE, step(COMPLETE), ""),
    (ExceptionType.ITEM_POST, step(RESTART), ""),
    (ExceptionType.ITEM_POST, step(WRITE), ""),
    (ExceptionType.ITEM_EXTERNAL, step(RESTART), ""),
    (ExceptionType.TIMEOUT, step(RESTART), ""),
    (ExceptionType.ABORT, step(LATER), ""),
    (ExceptionType.UNAVAILABLE, step(RESUBMIT), ""),
    (ExceptionType.VIOLATION, step(FAIL), ""),
    (ExceptionType.SELECTION, step(RESTART), "a selection chooses the flow"),
    (ExceptionType.SELECTION, step(REMOVE, "case"), "a selection chooses the flow"),
]


@pytest.mark.parametrize(("type", "only", "said"), PLACES)
def test_ex_2_a_primitive_without_anything_to_act_on_is_refused(
    type: ExceptionType, only: PrimitiveStep, said: str
) -> None:
    problems = rule_set_problems(rules(type, only))
    assert [said in problem for problem in problems] == ([True] if said else []), problems


LEFT = [
    ([step(SUSPEND, "case")], "the case stays suspended"),
    ([step(SUSPEND), step(CONTINUE)], ""),
    ([step(SUSPEND), step(RESTART)], ""),
    ([step(SUSPEND), step(REMOVE)], ""),
    ([step(SUSPEND), step(REMOVE, "case")], ""),
    ([step(SUSPEND), step(CONTINUE, when="false")], "the item stays suspended"),
]


@pytest.mark.parametrize(("steps", "said"), LEFT)
def test_ex_2_what_an_exlet_leaves_suspended_is_told_and_allowed(steps: list[Activity], said: str) -> None:
    made = rules(ExceptionType.ITEM_EXTERNAL, *steps)
    assert rule_set_problems(made) == []
    assert [said in warning for warning in rule_set_warnings(made)] == ([True] if said else [])
