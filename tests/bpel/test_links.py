"""Links: who waits for whom, and what happens where nobody comes. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.conftest import Playing
from tests.bpel.documents import (
    SPELL,
    assign,
    begin,
    buy,
    catch,
    condition,
    flow,
    handlers,
    note,
    note_value,
    process,
    put,
    receive,
    reply,
    scope,
    sequence,
    sources,
    targets,
    throw,
    traced,
    wait,
)

Spelled = Callable[[str], str]

LATE = "<wait>" + sources("l") + "<for>'PT5S'</for></wait>"
SUPPRESS = 'suppressJoinFailure="yes"'


def leaving(what: str, *links: str) -> str:
    return note(what, inside=sources(*links))


def coming(what: str, *links: str, join: str = "") -> str:
    return note(what, inside=targets(*links, join=join))


def test_a_target_waits_for_its_sources(spelled: Spelled) -> None:
    assert spelled(process(traced(flow(coming("b", "l"), leaving("a", "l"), links="l")))) == "ab"
    several = flow(coming("c", "l", "m"), leaving("a", "l"), sequence(wait(1), leaving("b", "m")), links="l m")
    assert spelled(process(traced(several))) == "abc"


def test_a_diamond_joins_once(spelled: Spelled) -> None:
    middle = [note(each, inside=targets(f"to{each}") + sources(f"from{each}")) for each in "bc"]
    last = coming("d", "fromb", "fromc")
    whole = flow(last, *middle, leaving("a", "tob", "toc"), links="tob toc fromb fromc")
    assert spelled(process(traced(whole))) in ("abcd", "acbd")


@pytest.mark.parametrize(
    ("first", "second", "join", "says"),
    [
        ("true()", "true()", "", "abc"),
        ("true()", "false()", "", "abc"),
        ("false()", "false()", "", "!joinFailure"),
        ("true()", "false()", "$l and $m", "!joinFailure"),
        ("true()", "true()", "$l and $m", "abc"),
        ("false()", "true()", "not($l) and $m", "abc"),
        ("true()", "true()", "not($l)", "!joinFailure"),
        ("false()", "false()", "not($l or $m)", "abc"),
    ],
)
def test_a_join_asks_the_states_of_its_links(spelled: Spelled, first: str, second: str, join: str, says: str) -> None:
    branches = leaving("a", f"l:{first}"), leaving("b", f"m:{second}"), coming("c", "l", "m", join=join)
    assert spelled(process(traced(flow(*branches, links="l m")))) == says


def test_a_join_failure_that_is_suppressed_skips_and_goes_on(spelled: Spelled) -> None:
    chain = flow(
        leaving("a", "l:false()"),
        note("b", inside=targets("l") + sources("m")),
        coming("c", "m"),
        coming("d", "m", join="not($m)"),
        links="l m",
    )
    text = process(traced(chain), attributes=SUPPRESS).replace(
        '<links><link name="l"/><link name="m"/>', '<links><link name="l"/><link name="m"/><link name="n"/>'
    )
    text = text.replace(sources("m"), sources("m", "n")).replace(
        targets("m", join="not($m)"), targets("n", join="not($n)")
    )
    assert spelled(text) == "ad"


@pytest.mark.parametrize("where", ["process", "flow", "sequence", "assign"])
def test_suppressing_is_inherited_from_whatever_is_around(spelled: Spelled, where: str) -> None:
    on = {each: (SUPPRESS if each == where else "") for each in ("process", "flow", "sequence", "assign")}
    target = f"<assign {on['assign']}>" + coming("c", "l").removeprefix("<assign >")
    inner = f"<sequence {on['sequence']}>{note('b')}{target}</sequence>"
    whole = flow(leaving("a", "l:false()"), inner, links="l", attributes=on["flow"])
    assert spelled(process(traced(whole), attributes=on["process"])) in ("ab", "ba")


def test_an_inner_no_is_nearer_than_an_outer_yes(spelled: Spelled) -> None:
    target = '<assign suppressJoinFailure="no">' + coming("c", "l").removeprefix("<assign >")
    whole = flow(leaving("a", "l:false()"), target, links="l")
    assert spelled(process(traced(whole), attributes=SUPPRESS)) == "!joinFailure"


def test_a_join_failure_can_be_caught_by_the_scope_around(spelled: Spelled) -> None:
    inner = scope(handlers(catch("bpel:joinFailure", note("x"))), sequence(note("b"), coming("c", "l")))
    assert spelled(process(traced(flow(leaving("a", "l:false()"), inner, links="l")))) in ("abx", "bax")


def test_the_join_of_a_scope_fails_outside_of_it(spelled: Spelled) -> None:
    inner = scope(targets("l"), handlers(all=note("x")), note("b"))
    assert spelled(process(traced(flow(leaving("a", "l:false()"), inner, links="l")))) == "!joinFailure"


def test_what_is_not_chosen_sends_no_along_its_links(spelled: Spelled) -> None:
    choice = f"<if>{condition('false()')}{leaving('a', 'l')}<else>{leaving('b', 'm')}</else></if>"
    whole = flow(choice, coming("c", "l"), coming("d", "m"), links="l m", attributes=SUPPRESS)
    assert spelled(process(traced(whole))) == "bd"


def test_an_event_that_is_not_picked_sends_no_along_its_links(spelled: Spelled) -> None:
    message = f'<onMessage partnerLink="desk" operation="tell" variable="news">{leaving("a", "l")}</onMessage>'
    choice = f"<pick>{message}<onAlarm><for>'PT1S'</for>{leaving('b', 'm')}</onAlarm></pick>"
    whole = flow(choice, coming("c", "l"), coming("d", "m"), links="l m", attributes=SUPPRESS)
    text = process(sequence(begin("spell", "talk yes"), whole, SPELL)).replace(
        'variable="news">', 'variable="news"><correlations><correlation set="talk"/></correlations>'
    )
    assert spelled(text) == "bd"


def test_a_fault_sends_no_along_the_links_of_what_it_ended(spelled: Spelled) -> None:
    failing = scope(handlers(all=note("x")), sequence(throw("p:no"), leaving("a", "l")))
    whole = flow(failing, coming("b", "l", join="not($l)"), links="l")
    assert spelled(process(traced(whole))) in ("xb", "bx")


def test_links_leave_fault_handlers_that_ran_and_those_that_did_not(spelled: Spelled) -> None:
    caught = handlers(catch("p:no", leaving("x", "l")), all=leaving("y", "m"))
    whole = flow(scope(caught, throw("p:no")), coming("b", "l"), coming("c", "m"), links="l m", attributes=SUPPRESS)
    assert spelled(process(traced(whole))) == "xb"


def test_links_of_handlers_say_no_if_nothing_failed(spelled: Spelled) -> None:
    whole = flow(scope(handlers(all=leaving("x", "l")), note("a")), coming("b", "l", join="not($l)"), links="l")
    assert spelled(process(traced(whole))) == "ab"


def test_links_cross_into_and_out_of_structures(spelled: Spelled) -> None:
    inner = sequence(note("b", inside=targets("l")), f"<if>{condition('true()')}{leaving('c', 'm')}</if>")
    whole = flow(inner, sequence(wait(1), leaving("a", "l")), scope(coming("d", "m")), links="l m")
    assert spelled(process(traced(whole))) == "abcd"


def test_structures_are_sources_and_targets_themselves(spelled: Spelled) -> None:
    first = f"<sequence>{sources('l')}{note('a')}{wait(1)}{note('b')}</sequence>"
    second = f"<flow>{targets('l')}{sources('m')}{note('c')}</flow>"
    third = f"<scope>{targets('m')}{note('d')}</scope>"
    assert spelled(process(traced(flow(third, second, first, links="l m")))) == "abcd"


def test_a_choice_that_is_skipped_sends_no_from_all_its_branches(spelled: Spelled) -> None:
    choice = f"<if>{targets('l')}{condition('true()')}{leaving('b', 'm')}</if>"
    whole = flow(leaving("a", "l:false()"), choice, coming("c", "m", join="not($m)"), links="l m", attributes=SUPPRESS)
    assert spelled(process(traced(whole))) == "ac"


def test_a_link_that_waits_for_the_rest_of_a_dead_sequence_says_no(spelled: Spelled) -> None:
    branch = sequence(note("b", inside=targets("l")), leaving("c", "m"))
    whole = flow(leaving("a", "l:false()"), branch, coming("d", "m"), links="l m", attributes=SUPPRESS)
    assert spelled(process(traced(whole))) == "acd", "only what has the failed join is skipped"


def test_links_leave_the_activity_that_creates_the_instance(play: Playing) -> None:
    start = receive("spell", creates=True, inside=sources("l"))
    text = process(flow(start, sequence(note("a", inside=targets("l")), SPELL), links="l"))
    assert play(text).spell() == "a"


def test_a_condition_on_a_link_may_ask_for_data_and_fail(spelled: Spelled) -> None:
    whole = flow(leaving("a", "l:$word.in = 0"), coming("b", "l"), links="l")
    assert spelled(process(traced(whole))) == "ab"
    failing = scope(handlers(catch("bpel:subLanguageExecutionFault", note("x"))), leaving("a", "l:(("))
    whole = flow(failing, coming("b", "l", join="true()"), links="l")
    assert spelled(process(traced(whole))) in ("axb", "abx")


def test_a_transition_sees_what_its_source_did(spelled: Spelled) -> None:
    whole = flow(leaving("a", "l:$trace = 'a'"), coming("b", "l"), links="l")
    assert spelled(process(traced(whole))) == "ab"


def test_ended_branches_release_those_who_wait_for_them(spelled: Spelled) -> None:
    inner = scope(
        handlers(all=note("x")),
        flow(sequence(wait(5), leaving("a", "l")), sequence(wait(1), throw("p:no"))),
    )
    whole = flow(inner, coming("b", "l", join="not($l)"), links="l")
    assert spelled(process(traced(whole))) in ("xb", "bx")


def test_a_failed_call_sends_no_and_its_handler_may_send_yes(spelled: Spelled) -> None:
    failing = buy(5, inside=f"<catchAll>{leaving('x', 'm')}</catchAll>")
    whole = flow(failing, coming("b", "m"), links="m")
    assert spelled(process(traced(whole))) == "xb"


def test_links_of_loops_go_by_the_loop(spelled: Spelled) -> None:
    loop = f"<while>{sources('l')}{condition('string-length($trace) &lt; 3')}{note('x')}</while>"
    assert spelled(process(traced(flow(coming("b", "l"), loop, links="l")))) == "xxxb"
    each = f'<forEach counterName="n" parallel="no">{sources("l")}<startCounterValue>1</startCounterValue>'
    each += f"<finalCounterValue>2</finalCounterValue><scope>{note('y')}</scope></forEach>"
    assert spelled(process(traced(flow(coming("b", "l"), each, links="l")))) == "yyb"


def test_reply_and_receive_are_sources_and_targets(play: Playing) -> None:
    start = (
        f'<receive partnerLink="desk" operation="ask" variable="question" createInstance="yes">{sources("l")}</receive>'
    )
    answer = assign(
        '<copy><from variable="question" part="in"/><to variable="answer" part="out"/></copy>',
        inside=targets("l") + sources("m"),
    )
    end = reply().replace("></reply>", f">{targets('m')}</reply>")
    assert play(process(flow(end, answer, start, links="l m"))).ask(4) == "4"


@pytest.mark.parametrize(
    ("first", "says"),
    [
        (scope(sources("l"), handlers(all=note("h")), throw("p:no")), "hb"),
        (f"<if>{sources('l')}{condition('false()')}{note('a')}</if>", "b"),
        (f"<wait>{sources('l')}<for>'PT1S'</for></wait>", "b"),
        (f"<empty>{sources('l')}</empty>", "b"),
    ],
)
def test_what_completes_sends_yes_even_by_its_handlers(spelled: Spelled, first: str, says: str) -> None:
    assert spelled(process(traced(flow(first, coming("b", "l"), links="l")))) == says


@pytest.mark.parametrize(
    "skipped",
    [
        scope(targets("l"), sequence(leaving("x", "m"))),
        f"<flow>{targets('l')}{sequence(leaving('x', 'm'))}</flow>",
        f"<while>{targets('l')}{sources('m')}{condition('false()')}<empty/></while>",
        f"<sequence>{targets('l')}{note('x')}{leaving('y', 'm')}</sequence>",
        f"<wait>{targets('l')}{sources('m')}<for>'PT1S'</for></wait>",
    ],
)
def test_what_is_skipped_sends_no_from_all_that_is_in_it(spelled: Spelled, skipped: str) -> None:
    last = coming("b", "m", join="not($m)")
    whole = flow(leaving("a", "l:false()"), skipped, last, links="l m", attributes=SUPPRESS)
    assert spelled(process(traced(whole))) == "ab"


def test_a_scope_begins_only_when_its_links_have_come(spelled: Spelled) -> None:
    own = '<variables><variable name="mine" type="xsd:int"><from>$number</from></variable></variables>'
    first = sequence(wait(1), put("5", "number"), leaving("a", "l"))
    whole = flow(first, scope(targets("l"), own, note_value("$mine")), links="l")
    assert spelled(process(traced(put("1", "number"), whole))) == "a5"
