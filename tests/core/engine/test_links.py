"""Links: transition and join conditions, dead paths, and links that cross the borders of structures."""

import pytest

from mendflow.core.engine.messages import ItemSkipped
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Branch,
    Catch,
    Choose,
    Empty,
    JobActivity,
    LinkSource,
    Parallel,
    Scope,
    Sequence,
    Throw,
)
from tests.core.engine.world import Play, started


def source(link: str, when: str = "") -> LinkSource:
    return LinkSource(link, Expr(when) if when else None)


def job(name: str, *, after: tuple[str, ...] = (), before: tuple[LinkSource, ...] = (), **more: object) -> JobActivity:
    return JobActivity(name=name, command=name, targets=after, sources=before, **more)  # type: ignore[arg-type]  # model fields


def parallel(*branches: Activity, links: str, **more: object) -> Parallel:
    named = tuple(links.split())
    return Parallel(name="p", branches=branches, links=named, **more)  # type: ignore[arg-type]  # model fields


def test_an_activity_starts_when_all_links_to_it_are_decided() -> None:  # FM-1
    a, b = job("a", before=(source("ac"),)), job("b", before=(source("bc"),))
    play = started(parallel(a, b, job("c", after=("ac", "bc")), links="ac bc"))
    assert play.jobs == ["a", "b"]
    play.done("a")
    assert play.jobs == ["b"]
    play.done("b")
    assert play.jobs == ["c"]


@pytest.mark.parametrize(
    ("join", "first", "second", "runs"),
    [
        ("any", True, False, True),
        ("any", False, False, False),
        ("all", True, True, True),
        ("all", True, False, False),
        (Expr("links.ac && !links.bc"), True, False, True),
        (Expr("links.ac && !links.bc"), True, True, False),
    ],
)
def test_the_join_condition_says_which_links_must_be_true(join: object, first: bool, second: bool, runs: bool) -> None:
    a = job("a", before=(source("ac", str(first).lower()),))
    b = job("b", before=(source("bc", str(second).lower()),))
    play = started(parallel(a, b, job("c", after=("ac", "bc"), join=join), links="ac bc"))
    play.done("a", "b")
    assert play.jobs == (["c"] if runs else [])
    assert play.skipped == ([] if runs else ["c"])


def test_a_join_that_fails_throws_join_failure_unless_suppressed() -> None:
    a = job("a", before=(source("l", "false"),))
    play = started(parallel(a, job("b", after=("l",), suppress_join_failure=False), links="l"))
    play.done("a")
    assert play.ended.fault is not None and play.ended.fault.name == "joinFailure"


def test_a_dead_path_is_walked_to_its_end() -> None:
    a = job("a", before=(source("ab", "false"),))
    b = job("b", after=("ab",), before=(source("bc"),))
    c = job("c", after=("bc",), before=(source("cd"),))
    play = started(parallel(a, b, c, job("d", after=("cd",)), links="ab bc cd"))
    play.done("a")
    assert play.skipped == ["b", "c", "d"]
    assert play.status == "completed"


def test_a_transition_condition_sees_what_its_activity_left() -> None:
    a = job("a", before=(source("big", "jobs.a.outputs > 10"), source("small", "jobs.a.outputs <= 10")))
    play = started(parallel(a, job("b", after=("big",)), job("c", after=("small",)), links="big small"))
    play.done("a", outputs=42)
    assert play.jobs == ["b"]
    assert play.skipped == ["c"]


def test_a_transition_condition_that_cannot_be_evaluated_is_a_fault() -> None:
    a = job("a", before=(source("l", "nobody.knows"),))
    play = started(parallel(a, job("b", after=("l",)), links="l"))
    play.done("a")
    assert play.ended.fault is not None and play.ended.fault.name == "uninitializedVariable"


def test_a_branch_that_is_not_chosen_makes_the_links_inside_it_false() -> None:
    inside = Sequence(name="s", body=(job("x"), job("y", before=(source("l"),))))
    choose = Choose(name="ch", branches=(Branch(Expr("1 > 2"), inside),), otherwise=job("z"))
    play = started(parallel(choose, job("b", after=("l",)), links="l"))
    assert play.skipped == ["x", "y", "b"]
    assert play.jobs == ["z"], "the dead path does not wait for the end of the branch that was chosen"


def test_a_skipped_structure_makes_the_links_of_its_parts_false() -> None:
    inside = Sequence(name="s", body=(job("x"), job("y", before=(source("l"),))), when=Expr("1 > 2"))
    play = started(parallel(inside, job("b", after=("l",)), links="l"))
    assert play.skipped == ["x", "y", "b"]
    assert play.status == "completed"


def test_a_link_may_lead_from_inside_one_structure_into_another() -> None:
    first = Sequence(name="s1", body=(job("a", before=(source("l"),)), job("b")))
    second = Sequence(name="s2", body=(job("c"), job("d", after=("l",))))
    play = started(parallel(first, second, links="l"))
    play.done("c")
    assert play.jobs == ["a"], "d waits for a"
    play.done("a")
    assert sorted(play.jobs) == ["b", "d"]


def test_a_link_that_was_decided_before_its_target_is_reached_is_remembered() -> None:
    first = job("a", before=(source("l", "false"),))
    second = Sequence(name="s2", body=(job("c"), job("d", after=("l",))))
    play = started(parallel(first, second, links="l"))
    play.done("a", "c")
    assert play.skipped == ["d"]


def test_a_link_from_a_fault_handler_is_true_when_the_handler_ran() -> None:
    catch = Catch(fault="x", body=job("h", before=(source("l"),)))
    scope = Scope(name="sc", body=Throw(name="t", fault="x"), catches=(catch,))
    play = started(parallel(scope, job("b", after=("l",)), links="l"))
    play.done("h")
    assert play.jobs == ["b"]


def test_a_link_from_a_fault_handler_that_never_ran_is_false_when_its_scope_ends() -> None:
    catch = Catch(fault="x", body=job("h", before=(source("l"),)))
    scope = Scope(name="sc", body=job("a"), catches=(catch,))
    play = started(parallel(scope, job("b", after=("l",)), links="l"))
    play.done("a")
    assert play.skipped == ["b"]


def test_a_link_from_work_that_a_fault_stopped_is_false_and_one_from_its_scope_is_decided_as_usual() -> None:
    stopped = Parallel(name="q", branches=(job("a", before=(source("l"),)), job("f")))
    scope = Scope(name="sc", body=stopped, catches=(Catch(body=Empty(name="e")),), sources=(source("m"),))
    play = started(parallel(scope, job("b", after=("l",)), job("c", after=("m",)), links="l m"))
    play.fail("f")
    assert play.skipped == ["b"]
    assert play.jobs == ["c"]


def test_links_of_a_failed_branch_are_false_when_the_others_may_finish() -> None:
    a = job("a", before=(source("ab"),))
    b = job("b", after=("ab",), join="all")
    play = started(parallel(a, b, job("c"), links="ab", on_fault="finish"))
    play.fail("a")
    assert (play.skipped, play.jobs, play.status) == (["b"], ["c"], "running")
    play.done("c")
    assert play.status == "failed"


def needs(edges: dict[str, str]) -> Play:
    """Jobs that need others, as the YAML format writes them: every job completes or fails by its own."""
    links = {(first, then): f"{first}-{then}" for then, before in edges.items() for first in before.split()}
    jobs = [
        job(
            name,
            after=tuple(link for (_, then), link in links.items() if then == name),
            before=tuple(source(link) for (first, _), link in links.items() if first == name),
            join="all",
        )
        for name in edges
    ]
    return started(parallel(*jobs, links=" ".join(links.values()), on_fault="finish"))


def test_a_diamond_of_needs() -> None:  # FM-1
    play = needs({"a": "", "b": "a", "c": "a", "d": "b c"})
    play.done("a")
    assert play.jobs == ["b", "c"]
    play.done("b")
    assert play.jobs == ["c"]
    play.done("c")
    assert play.jobs == ["d"]


def test_what_needs_a_failed_job_is_skipped_and_the_rest_goes_on() -> None:
    play = needs({"a": "", "b": "", "c": "a", "d": "c", "e": "b"})
    play.fail("a")
    play.done("b", "e")
    assert play.skipped == ["c", "d"]
    assert play.status == "failed"
    assert [order.reason for order in play.given if isinstance(order, ItemSkipped)] == [
        "it needs a, which did not complete",
        "it needs c, which did not complete",
    ]


def test_a_link_out_of_an_isolated_scope_is_decided_when_the_scope_ends() -> None:
    inside = Sequence(name="s", body=(job("a", before=(source("l"),)), job("b")))
    scope = Scope(name="sc", isolated=True, body=inside)
    play = started(parallel(scope, job("c", after=("l",)), links="l"))
    play.done("a")
    assert play.jobs == ["b"]
    play.done("b")
    assert play.jobs == ["c"]


def test_a_link_out_of_an_isolated_scope_is_false_if_the_scope_had_a_fault() -> None:
    inside = Sequence(name="s", body=(job("a", before=(source("l"),)), job("b")))
    scope = Scope(name="sc", isolated=True, body=inside, catches=(Catch(body=Empty(name="e")),))
    play = started(parallel(scope, job("c", after=("l",)), links="l"))
    play.done("a").fail("b")
    assert play.skipped == ["c"]
