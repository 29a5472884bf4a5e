"""Scopes: undoing, ending, handlers of faults, and what belongs to a scope alone. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.conftest import Playing
from tests.bpel.documents import (
    SPELL,
    assign,
    buy,
    catch,
    condition,
    copy,
    flow,
    for_each,
    handlers,
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


# Fault handlers


def thrown(body: str, *catches: str, all: str = "") -> str:
    return traced(scope(handlers(*catches, all=all), body))


NUMBER = put("4", "number")
REFUSED = put("4", "refusal.payload")
OTHER = assign(copy("<from><literal><d:order id='4'/></literal></from>", '<to variable="order"/>'))
DECLARED = 'faultVariable="f" faultMessageType="d:refusalMessage"'
AS_ELEMENT = 'faultVariable="f" faultElement="d:refusal"'


@pytest.mark.parametrize(
    ("catches", "says"),
    [
        ([catch("p:no", note("n"))], "n"),
        ([catch("p:other", note("o")), catch("p:no", note("n"))], "n"),
        ([catch("p:no", note("n")), catch("p:no", note_value("$f.payload"), DECLARED)], "4"),
        ([catch("", note_value("$f.payload"), DECLARED), catch("p:no", note("n"))], "n"),
        ([catch("", note_value("$f.payload"), DECLARED)], "4"),
        ([catch("", note_value("$f"), AS_ELEMENT)], "4"),
        ([catch("", note_value("$f"), AS_ELEMENT), catch("", note_value("concat('m', $f.payload)"), DECLARED)], "m4"),
        (
            [
                catch("p:no", note_value("$f"), AS_ELEMENT),
                catch("p:no", note_value("concat('m', $f.payload)"), DECLARED),
            ],
            "m4",
        ),
        ([catch("p:no", note("x"), 'faultVariable="f" faultElement="d:order"'), catch("p:no", note("n"))], "n"),
        ([catch("p:no", note("x"), 'faultVariable="f" faultElement="d:order"')], "a"),
        ([catch("p:other", note("x"))], "a"),
        ([], "a"),
    ],
)
def test_the_handler_that_says_most_about_a_fault_takes_it(spelled: Spelled, catches: list[str], says: str) -> None:
    body = sequence(REFUSED, throw("p:no", "refusal"))
    assert spelled(process(thrown(body, *catches, all=note("a")))) == says


@pytest.mark.parametrize(
    ("catches", "says"),
    [
        ([catch("p:no", note_value("$f/@id"), 'faultVariable="f" faultElement="d:order"')], "4"),
        ([catch("", note_value("$f/@id"), 'faultVariable="f" faultElement="d:order"'), catch("p:no", note("n"))], "n"),
        ([catch("", note_value("$f/@id"), 'faultVariable="f" faultElement="d:order"')], "4"),
        ([catch("", note("x"), 'faultVariable="f" faultElement="d:offer"')], "a"),
    ],
)
def test_an_element_is_data_of_a_fault(spelled: Spelled, catches: list[str], says: str) -> None:
    assert spelled(process(thrown(sequence(OTHER, throw("p:no", "order")), *catches, all=note("a")))) == says


def test_without_data_a_handler_that_asks_for_some_is_passed_by(spelled: Spelled) -> None:
    catches = [catch("p:no", note("x"), DECLARED), catch("", note("y"), DECLARED)]
    assert spelled(process(thrown(throw("p:no"), *catches, all=note("a")))) == "a"


def test_throwing_what_holds_nothing_is_a_fault_of_its_own(spelled: Spelled) -> None:
    assert spelled(process(thrown(throw("p:no", "refusal"), catch("bpel:uninitializedVariable", note("u"))))) == "u"


def test_the_data_of_a_fault_is_a_copy(spelled: Spelled) -> None:
    inner = scope(
        handlers(catch("p:no", sequence(put("5", "f.payload"), "<rethrow/>"), DECLARED)), throw("p:no", "refusal")
    )
    assert spelled(process(thrown(sequence(REFUSED, inner), catch("p:no", note_value("$f.payload"), DECLARED)))) == "4"
    changed = sequence(put("9", "refusal.payload"), note_value("$f.payload"))
    body = sequence(REFUSED, throw("p:no", "refusal"))
    assert spelled(process(thrown(body, catch("p:no", changed, DECLARED)))) == "4"


def test_a_fault_that_a_catch_all_throws_again_keeps_its_name_and_data(spelled: Spelled) -> None:
    inner = scope(handlers(all=sequence(note("i"), "<rethrow/>")), throw("p:no", "refusal"))
    assert spelled(process(thrown(sequence(REFUSED, inner), catch("p:no", note_value("$f.payload"), DECLARED)))) == "i4"


def test_a_fault_in_a_handler_goes_outwards(spelled: Spelled) -> None:
    inner = scope(handlers(catch("p:no", throw("p:other")), all=note("x")), FAIL)
    assert spelled(process(thrown(inner, catch("p:other", note("o"))))) == "o"


def test_the_process_itself_has_handlers(spelled: Spelled) -> None:
    handled = handlers(catch("p:no", sequence(note("h"), SPELL)))
    assert spelled(process(handled, traced(note("a"), FAIL))) == "ah"


def test_a_fault_that_nobody_catches_ends_the_process(play: Playing) -> None:
    stage = play(process(traced(FAIL)))
    assert stage.spell() == "!no"
    assert stage.statuses == ["failed"]


def test_faults_of_a_partner_are_caught_by_name_and_by_data(spelled: Spelled) -> None:
    why = 'faultVariable="f" faultMessageType="s:troubleMessage"'
    assert spelled(process(thrown(buy(6), catch("s:soldOut", note_value("$f.why"), why)))) == "6"
    assert (
        spelled(process(thrown(buy(6), catch("", note_value("$f"), 'faultVariable="f" faultElement="s:trouble"'))))
        == "6"
    )
    assert spelled(process(thrown(buy(6), catch("s:soldOut", note("n"))))) == "n"
    assert spelled(process(thrown(buy(5), catch("s:soldOut", note("n")), all=note("a")))) == "a"
    assert spelled(process(thrown(buy(5), catch("s:Oops", note("o")), all=note("a")))) == "o"
    inline = f'<catch faultName="s:soldOut">{note("i")}</catch><catchAll>{note("j")}</catchAll>'
    assert spelled(process(traced(buy(6, inside=inline)))) == "i"
    assert spelled(process(traced(buy(5, inside=inline)))) == "j"
    assert spelled(process(traced(buy(6)))) == "!soldOut"


# Standard faults that end the process


def test_standard_faults_may_end_the_process_at_once(play: Playing) -> None:
    failing = scope(handlers(all=note("x")), put("$unset", "number"))
    assert play(process(traced(failing), attributes='exitOnStandardFault="no"')).spell() == "x"
    assert play(process(traced(failing), attributes='exitOnStandardFault="yes"')).spell() == "!uninitializedVariable"


def test_a_scope_says_for_itself_whether_it_exits(play: Playing) -> None:
    for outer, inner, says in (("yes", "no", "x"), ("no", "yes", "!uninitializedVariable")):
        failing = scope(handlers(all=note("x")), put("$unset", "number"), attributes=f'exitOnStandardFault="{inner}"')
        assert play(process(traced(failing), attributes=f'exitOnStandardFault="{outer}"')).spell() == says


def test_own_faults_never_exit(play: Playing) -> None:
    assert play(process(thrown(FAIL, all=note("x")), attributes='exitOnStandardFault="yes"')).spell() == "x"


def test_join_failures_do_not_exit_where_they_are_suppressed_and_do_elsewhere(play: Playing) -> None:
    body = flow(note("a", inside=sources("l:false()")), note("b", inside=targets("l")), links="l")
    both = 'exitOnStandardFault="yes" suppressJoinFailure="{}"'
    assert play(process(traced(body), attributes=both.format("yes"))).spell() == "a"
    caught = scope(handlers(all=note("x")), body)
    assert play(process(traced(caught), attributes=both.format("no"))).spell() in ("ax", "!joinFailure")


def test_a_standard_fault_is_thrown_by_hand_like_any_other(play: Playing) -> None:
    by_hand = throw("bpel:selectionFailure")
    assert play(process(thrown(by_hand, catch("bpel:selectionFailure", note("s"))))).spell() == "s"
    exiting = thrown(by_hand, all=note("x"))
    assert play(process(exiting, attributes='exitOnStandardFault="yes"')).spell() == "!selectionFailure"


# Ending


def ending(*bodies: str) -> str:
    """All of these run side by side until one of them fails."""
    return traced(scope(handlers(all=note("x")), flow(*bodies)))


def terminated(body: str, handler: str = note("t")) -> str:
    return scope(f"<terminationHandler>{handler}</terminationHandler>", body)


def test_what_still_runs_is_ended_before_the_fault_is_handled(spelled: Spelled) -> None:
    assert spelled(process(ending(terminated(wait(9)), sequence(wait(1), FAIL)))) == "tx"


def test_what_is_over_is_not_ended(spelled: Spelled) -> None:
    assert spelled(process(ending(terminated(note("a")), sequence(wait(1), FAIL)))) == "ax"


def test_inner_scopes_are_ended_before_outer_ones(spelled: Spelled) -> None:
    inner = terminated(terminated(wait(9), note("i")), note("o"))
    assert spelled(process(ending(inner, sequence(wait(1), FAIL)))) == "iox"


def test_without_a_handler_ending_undoes_what_completed(spelled: Spelled) -> None:
    running = scope(sequence(undone("a"), wait(9)))
    assert spelled(process(ending(running, sequence(wait(1), FAIL)))) == "aAx"
    own = terminated(sequence(undone("a"), wait(9)), note("t"))
    assert spelled(process(ending(own, sequence(wait(1), FAIL)))) == "atx"


def test_a_fault_while_ending_does_not_leave_the_scope(spelled: Spelled) -> None:
    broken = terminated(wait(9), sequence(note("t"), throw("p:worse"), note("u")))
    assert spelled(process(ending(broken, sequence(wait(1), FAIL)))) == "tx"


def test_a_scope_that_handles_a_fault_already_is_let_finish_that(spelled: Spelled) -> None:
    busy = scope(
        handlers(all=sequence(note("h"), wait(9), note("z"))),
        "<terminationHandler>" + note("t") + "</terminationHandler>",
        FAIL,
    )
    assert spelled(process(ending(busy, sequence(wait(1), throw("p:later"))))) == "hzx"


def test_turns_that_are_no_longer_needed_are_ended_by_their_handlers(spelled: Spelled) -> None:
    body = "<terminationHandler>" + note("t") + "</terminationHandler><wait><for>concat('PT', $n, 'S')</for></wait>"
    done = "<completionCondition><branches>1</branches></completionCondition>"
    assert spelled(process(traced(for_each(body, last="3", parallel=True, done=done)))) == "tt"


def test_exit_ends_everything_and_runs_no_handler(play: Playing) -> None:
    inside = scope(
        handlers(all=note("x")),
        "<terminationHandler>" + buy(1) + "</terminationHandler>",
        flow(wait(9), sequence(wait(1), "<exit/>")),
    )
    stage = play(process(traced(inside)))
    assert stage.spell() == "ended"
    assert stage.calls == []


# What belongs to a scope


def test_a_variable_hides_one_of_the_same_name_outside(spelled: Spelled) -> None:
    own = '<variables><variable name="number" type="xsd:int"><from>7</from></variable></variables>'
    inner = scope(own, sequence(put("$number + 1", "number"), note_value("$number")))
    assert spelled(process(traced(put("1", "number"), inner, note_value("$number")))) == "81"


def test_a_variable_of_a_scope_begins_anew_in_every_turn(spelled: Spelled) -> None:
    own = '<variables><variable name="mine" type="xsd:int"/></variables>'
    turn = scope(own, handlers(all=note("u")), sequence(note_value("$mine"), put("1", "mine")))
    once = sequence(
        put("0", "number"),
        f"<while>{condition('$number &lt; 2')}{sequence(put('$number + 1', 'number'), turn)}</while>",
    )
    assert spelled(process(traced(once))) == "uu"


def test_variables_begin_in_the_order_in_which_they_are_declared(spelled: Spelled) -> None:
    own = (
        '<variables><variable name="first" type="xsd:int"><from>$word.in + 2</from></variable>'
        '<variable name="then" type="xsd:int"><from>$first + 1</from></variable></variables>'
    )
    assert spelled(process(traced(scope(own, note_value("$then"))))) == "3"


def test_a_beginning_that_fails_is_a_fault_of_the_scope_around(spelled: Spelled) -> None:
    own = '<variables><variable name="mine" type="xsd:int"><from>$unset</from></variable></variables>'
    inner = scope(own, handlers(all=note("i")), note("b"))
    assert spelled(process(thrown(inner, catch("bpel:scopeInitializationFailure", note("s"))))) == "s"


@pytest.mark.parametrize("attributes", ['isolated="yes"', 'isolated="no"'])
def test_isolated_scopes_never_run_side_by_side(spelled: Spelled, attributes: str) -> None:
    each = [
        scope(sequence(put("$number", "wish.in"), note("b"), wait(1), note("e")), attributes=attributes)
        for _ in range(3)
    ]
    found = spelled(process(traced(put("0", "number"), flow(*each))))
    assert found == ("bebebe" if "yes" in attributes else "bbbeee")


def test_partner_links_belong_to_scopes(play: Playing) -> None:
    own = '<partnerLinks><partnerLink name="other" partnerLinkType="s:ShopLink" partnerRole="shop"/></partnerLinks>'
    call = '<invoke partnerLink="other" operation="buy" inputVariable="wish" outputVariable="goods"/>'
    stage = play(process(traced(scope(own, sequence(put("3", "wish.in"), call, note_value("$goods.out"))))))
    assert stage.spell() == "3"
    assert stage.calls == ["3"]


def test_links_leave_an_isolated_scope_when_it_is_over(spelled: Spelled) -> None:
    inner = scope(sequence(note("a", inside=sources("l")), wait(1), note("b")), attributes='isolated="yes"')
    assert spelled(process(traced(flow(inner, note("c", inside=targets("l")), links="l")))) == "abc"


def test_exit_ends_the_process_from_any_handler(spelled: Spelled) -> None:
    assert spelled(process(traced(scope(handlers(all="<exit/>"), FAIL)))) == "ended"
    undoes = scope(undoing("<exit/>"), note("a"), name="a")
    assert spelled(process(traced(saved(sequence(undoes, FAIL))))) == "ended"


def test_a_call_that_is_ended_is_waited_for_no_more(spelled: Spelled) -> None:
    assert spelled(process(ending(buy(9), sequence(wait(1), FAIL)))) == "x"
