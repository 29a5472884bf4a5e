"""Compensation against a model of it: each completed scope at most once, in reverse order of completion."""

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.engine.messages import SubmitJob
from mendflow.core.model.flow import (
    Activity,
    Compensate,
    ForEach,
    JobActivity,
    Parallel,
    Scope,
    Sequence,
)
from mendflow.core.model.jobs import Outcome
from tests.core.engine.world import Play, flow


class Tree(msgspec.Struct):
    """A scope that ends when its job `end-NAME` has ended. `undo`: it has no handler, one of its own, or one that
    compensates what is inside it as well."""

    name: str
    inner: list["Tree"]
    undo: str
    together: bool


def tree(random: Random, depth: int, names: list[int]) -> Tree:
    names.append(len(names))
    name = f"s{len(names)}"
    inner = [tree(random, depth - 1, names) for _ in range(random.randint(0, 3) if depth else 0)]
    return Tree(name, inner, random.choice(("none", "own", "own", "all")), random.random() < 0.5)


def scope_of(each: Tree) -> Activity:
    inner = tuple(scope_of(one) for one in each.inner)
    arranged: Activity = (
        Parallel(name=f"in-{each.name}", branches=inner)
        if each.together
        else Sequence(name=f"in-{each.name}", body=inner)
    )
    body = Sequence(name=f"body-{each.name}", body=(arranged, JobActivity(name=f"end-{each.name}", command="x")))
    undo: Activity | None = JobActivity(name=f"undo-{each.name}", command="x") if each.undo != "none" else None
    if each.undo == "all" and undo is not None:
        undo = Sequence(name=f"undoing-{each.name}", body=(undo, Compensate(name=f"all-{each.name}")))
    return Scope(name=each.name, body=body, compensation=undo)


def expected(trees: list[Tree], completed: list[str]) -> list[str]:
    """The undo jobs in their order, given in which order all the scopes completed."""
    order: list[str] = []
    for each in sorted(trees, key=lambda one: completed.index(one.name), reverse=True):
        if each.undo != "none":
            order.append(f"undo-{each.name}")
        if each.undo != "own":
            order += expected(each.inner, completed)
    return order


def live(play: Play, random: Random) -> tuple[list[str], list[str]]:
    """Answer in any order until the case is over, crashing now and then. Gives which scopes completed, and which undo
    jobs were begun."""
    completed: list[str] = []
    while not play.case.over:
        serial = random.choice([*play.out])
        order = play.out[serial]
        assert isinstance(order, SubmitJob)
        if order.spec.item == "boom":
            play.fail("boom")
        else:
            if order.spec.item.startswith("end-"):
                completed.append(order.spec.item.removeprefix("end-"))
            play.finish(serial, Outcome())
        if random.random() < 0.2:
            play.crash(with_snapshot=random.random() < 0.5)
    begun = [order.spec.item for order in play.given if isinstance(order, SubmitJob)]
    return completed, [item for item in begun if item.startswith("undo-")]


@given(st.integers(0, 2**32))
def test_all_that_completed_is_compensated_in_reverse_order_of_completion(seed: int) -> None:
    random = Random(seed)
    trees = [tree(random, 2, names) for names in [list[int]()] for _ in range(random.randint(1, 3))]
    scopes = Parallel(name="p", branches=tuple(map(scope_of, trees)))
    play = Play(flow(Sequence(name="s", body=(scopes, JobActivity(name="boom", command="x")))))
    completed, undone = live(play, random)
    assert undone == expected(trees, completed)
    assert play.status == "failed"


def pairs(trees: list[Tree]) -> list[tuple[str, str]]:
    """Scopes that stand directly in the same scope."""
    found = [(a.name, b.name) for a in trees for b in trees if a is not b]
    return found + [pair for each in trees for pair in pairs(each.inner)]


@given(st.integers(0, 2**32))
def test_a_fault_in_the_middle_compensates_only_what_completed_and_that_once(seed: int) -> None:
    random = Random(seed)
    trees = [tree(random, 2, names) for names in [list[int]()] for _ in range(random.randint(1, 3))]
    branches = (*map(scope_of, trees), JobActivity(name="boom", command="x"))
    play = Play(flow(Parallel(name="p", branches=branches)))
    completed, undone = live(play, random)
    assert len(set(undone)) == len(undone)
    assert {item.removeprefix("undo-") for item in undone} <= set(completed)
    for earlier, later in pairs(trees):
        both = {f"undo-{earlier}", f"undo-{later}"} <= set(undone)
        if both and completed.index(earlier) < completed.index(later):
            assert undone.index(f"undo-{later}") < undone.index(f"undo-{earlier}")


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_turns_of_a_loop_are_compensated_each_with_its_own_data(seed: int, turns: int) -> None:
    random = Random(seed)
    scope = Scope(
        name="sc",
        body=JobActivity(name="end-sc", command="x"),
        variables={"mine": "${{ item }}"},
        compensation=JobActivity(name="undo-sc", command="${{ mine }}"),
    )
    loop = ForEach(name="each", items=[n * 10 for n in range(turns)], body=scope, parallel=random.random() < 0.5)
    play = Play(flow(Sequence(name="s", body=(loop, JobActivity(name="boom", command="x")))))
    completed, undone = live(play, random)
    assert undone == [f"undo-{item}" for item in reversed(completed)]
    commands = {str(order.spec.item): order.spec.command for order in play.given if isinstance(order, SubmitJob)}
    assert all(commands[f"undo-sc[{turn}]"] == str(turn * 10) for turn in range(turns))
