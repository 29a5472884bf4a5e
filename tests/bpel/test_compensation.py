"""Undoing: what completed is taken back, the last first. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.documents import (
    catch,
    condition,
    flow,
    for_each,
    handlers,
    invoke,
    note,
    note_value,
    process,
    put,
    scope,
    sequence,
    sources,
    targets,
    throw,
    traced,
    undoing,
    wait,
)

Spelled = Callable[[str], str]

COMPENSATE = "<compensate/>"
FAIL = throw("p:no")


def undone(name: str, *inside: str) -> str:
    """A scope that notes a letter, and the capital letter when it is undone."""
    return scope(undoing(note(name.upper())), sequence(note(name), *inside), name=name)


def saved(body: str, *catches: str, all: str = COMPENSATE) -> str:
    return scope(handlers(*catches, all=all), body, name="around")


def test_scopes_are_undone_the_last_first(spelled: Spelled) -> None:
    assert spelled(process(traced(saved(sequence(undone("a"), undone("b"), undone("c"), FAIL))))) == "abcCBA"


def test_only_what_completed_is_undone(spelled: Spelled) -> None:
    failing = scope(undoing(note("X")), sequence(note("x"), FAIL), name="x")
    assert spelled(process(traced(saved(sequence(undone("a"), failing))))) == "axA"


def test_one_scope_is_undone_by_name(spelled: Spelled) -> None:
    steps = sequence(undone("a"), undone("b"), FAIL)
    named = '<compensateScope target="a"/>'
    assert spelled(process(traced(saved(steps, all=named)))) == "abA"
    twice = sequence(named, named, '<compensateScope target="b"/>')
    assert spelled(process(traced(saved(steps, all=twice)))) == "abAB", "undone once, it has nothing to undo"


def test_a_scope_without_a_handler_undoes_what_is_in_it(spelled: Spelled) -> None:
    outer = scope(sequence(undone("a"), undone("b")), name="outer")
    assert spelled(process(traced(saved(sequence(outer, undone("c"), FAIL))))) == "abcCBA"


def test_a_handler_decides_what_in_it_is_undone(spelled: Spelled) -> None:
    outer = scope(undoing(note("O")), sequence(undone("a"), undone("b")), name="outer")
    assert spelled(process(traced(saved(sequence(outer, FAIL))))) == "abO"
    asked = scope(undoing(sequence(note("O"), COMPENSATE)), sequence(undone("a"), undone("b")), name="outer")
    assert spelled(process(traced(saved(sequence(asked, FAIL))))) == "abOBA"


def test_without_any_handler_a_fault_undoes_everything_on_its_way_up(spelled: Spelled) -> None:
    inner = scope(sequence(undone("a"), undone("b"), FAIL), name="inner")
    assert spelled(process(traced(saved(inner, all=note("x"))))) == "abBAx"


def test_every_turn_of_a_loop_is_undone(spelled: Spelled) -> None:
    turn = scope(undoing(note_value("$number")), sequence(put("$number + 1", "number"), note("t")), name="turn")
    loop = f"<while>{condition('$number &lt; 3')}{turn}</while>"
    own = scope(
        '<variables><variable name="mine" type="xsd:int"/></variables>',
        undoing(note_value("$mine")),
        sequence(put("$number + 1", "number"), put("$number", "mine")),
        name="turn",
    )
    assert spelled(process(traced(put("0", "number"), saved(sequence(loop, FAIL))))) == "ttt333"
    remembered = f"<while>{condition('$number &lt; 3')}{own}</while>"
    assert spelled(process(traced(put("0", "number"), saved(sequence(remembered, FAIL))))) == "321"
    by_name = '<compensateScope target="turn"/>'
    assert spelled(process(traced(put("0", "number"), saved(sequence(remembered, FAIL), all=by_name)))) == "321"


@pytest.mark.parametrize("parallel", [False, True])
def test_every_turn_of_a_for_each_is_undone(spelled: Spelled, parallel: bool) -> None:
    body = undoing(note_value("$n")) + note("t")
    loop = for_each(body, last="3", parallel=parallel)
    found = spelled(process(traced(saved(sequence(loop, FAIL)))))
    assert found == "ttt321" or (parallel and sorted(found[3:]) == ["1", "2", "3"])


def test_a_handler_sees_variables_of_outer_scopes_as_they_are_now(spelled: Spelled) -> None:
    first = scope(undoing(note_value("$number")), put("1", "number"), name="first")
    assert spelled(process(traced(saved(sequence(first, put("2", "number"), FAIL))))) == "2"


def test_branches_that_depend_by_links_are_undone_in_reverse(spelled: Spelled) -> None:
    first = scope(sources("l"), undoing(note("A")), note("a"), name="a")
    second = scope(targets("l"), undoing(note("B")), note("b"), name="b")
    assert spelled(process(traced(saved(sequence(flow(second, first, links="l"), FAIL))))) == "abBA"


def test_a_fault_while_undoing_goes_to_who_asked_for_it(spelled: Spelled) -> None:
    broken = scope(undoing(sequence(note("B"), throw("p:worse"))), note("b"), name="b")
    inner = scope(handlers(all=COMPENSATE), sequence(undone("a"), broken, FAIL), name="inner")
    outer = saved(inner, catch("p:worse", note("w")), all=note("n"))
    assert spelled(process(traced(outer))) == "abBw"


def test_a_handler_that_fails_undoes_what_it_did_itself(spelled: Spelled) -> None:
    again = scope(undoing(note("H")), note("h"), name="h")
    broken = scope(undoing(sequence(again, throw("p:worse"))), note("b"), name="b")
    inner = scope(handlers(all=COMPENSATE), sequence(broken, FAIL), name="inner")
    assert spelled(process(traced(saved(inner, all=note("x"))))) == "bhHx"


def test_undoing_waits_until_it_is_done(spelled: Spelled) -> None:
    slow = scope(undoing(sequence(wait(3), note("S"))), note("s"), name="s")
    assert spelled(process(traced(saved(sequence(slow, FAIL), all=sequence(COMPENSATE, note("x")))))) == "sSx"


def test_a_call_has_a_handler_of_its_own(spelled: Spelled) -> None:
    call = sequence(
        put("1", "wish.in"),
        invoke("buy", inside=undoing(note("U")), name="call"),
    )
    by_name = '<compensateScope target="call"/>'
    assert spelled(process(traced(saved(sequence(call, FAIL))))) == "U"
    assert spelled(process(traced(saved(sequence(call, FAIL), all=by_name)))) == "U"


def test_a_scope_that_failed_is_not_undone(spelled: Spelled) -> None:
    inner = scope(
        undoing(note("I")), handlers(all=sequence(note("h"), undone("b"))), sequence(undone("a"), FAIL), name="inner"
    )
    assert spelled(process(traced(saved(sequence(inner, FAIL))))) == "ahb"


def test_handlers_have_scopes_and_handlers_in_them(spelled: Spelled) -> None:
    inner = scope(undoing(scope(handlers(all=note("i")), FAIL)), note("a"), name="a")
    assert spelled(process(traced(saved(sequence(inner, FAIL))))) == "ai"
    one = scope(undoing('<compensateScope target="a"/>'), sequence(undone("a"), undone("b")), name="both")
    assert spelled(process(traced(saved(sequence(one, FAIL))))) == "abA"


OWN = '<variables><variable name="mine" type="xsd:int"><from>3</from></variable></variables>'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (saved(sequence(scope(OWN, undoing(note_value("$mine")), put("4", "mine"), name="q"), FAIL)), "4"),
        (
            saved(
                sequence(scope(undoing(put("7", "number")), note("a"), name="q"), FAIL),
                all=sequence(COMPENSATE, note_value("$number")),
            ),
            "a7",
        ),
        (saved(saved(sequence(undone("a"), FAIL), all=sequence(COMPENSATE, "<rethrow/>")), all=note("o")), "aAo"),
        (
            saved(
                sequence(
                    scope(handlers(all=note("h")), sequence(undone("a"), FAIL), name="q"), undone("b"), throw("p:no")
                )
            ),
            "ahbB",
        ),
        (saved(sequence(for_each(undone("a"), last="2"), FAIL)), "aaAA"),
        (
            saved(
                sequence(
                    scope(
                        sequence(undone("a"), scope(sequence(undone("b"), undone("c")), name="i"), undone("d")),
                        name="o",
                    ),
                    FAIL,
                )
            ),
            "abcdDCBA",
        ),
    ],
)
def test_undoing_goes_back_the_way_that_was_gone(spelled: Spelled, body: str, says: str) -> None:
    assert spelled(process(traced(body))) == says
