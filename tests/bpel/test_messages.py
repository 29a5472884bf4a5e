"""Messages: who takes which, what a reply answers, and what goes wrong in conversations. FM-1 FM-2"""

from collections.abc import Callable

import pytest

from tests.bpel.conftest import Playing
from tests.bpel.documents import (
    SPELL,
    assign,
    begin,
    buy,
    catch,
    copy,
    correlations,
    flow,
    for_each,
    handlers,
    invoke,
    note,
    note_value,
    process,
    put,
    receive,
    reply,
    scope,
    sequence,
    throw,
    traced,
    wait,
)

Spelled = Callable[[str], str]

ECHO = put("$question.in", "answer.out")
ANSWER = ECHO + reply()


def on_message(operation: str, body: str, *sets: str, exchange: str = "") -> str:
    variable = {"ask": "question", "tell": "news", "spell": "word"}[operation]
    exchanging = f' messageExchange="{exchange}"' if exchange else ""
    return (
        f'<onMessage partnerLink="desk" operation="{operation}" variable="{variable}"{exchanging}>'
        f"{correlations(*sets)}{body}</onMessage>"
    )


def pick(*events: str, creates: bool = False) -> str:
    creating = ' createInstance="yes"' if creates else ""
    return f"<pick{creating}>{''.join(events)}</pick>"


def test_every_request_begins_a_case_of_its_own(play: Playing) -> None:
    stage = play(process(sequence(begin(), ANSWER)))
    assert [stage.ask(each) for each in (3, 4, 5)] == ["3", "4", "5"]
    assert stage.statuses == ["completed"] * 3


def test_messages_find_the_case_of_their_conversation(play: Playing) -> None:
    talk = sequence(begin("ask", "talk yes"), ANSWER, receive("spell", "talk no"), put("$question.in", "trace"), SPELL)
    stage = play(process(talk))
    assert [stage.ask(each) for each in (1, 2)] == ["1", "2"]
    assert [stage.spell(each) for each in (2, 1)] == ["2", "1"]


def test_a_message_that_nobody_waits_for_yet_is_kept(play: Playing) -> None:
    talk = sequence(begin("tell", "talk yes"), wait(5), receive("ask", "talk no"), ANSWER)
    stage = play(process(talk))
    early = stage.send("ask", 7)
    stage.tell(7)
    assert stage.answer(early) == "7"


def test_a_one_way_message_begins_a_conversation(play: Playing) -> None:
    stage = play(process(sequence(begin("tell", "talk yes"), receive("ask", "talk no"), ANSWER)))
    stage.tell(1)
    stage.tell(2)
    assert (stage.ask(2), stage.ask(1)) == ("2", "1")


def test_a_set_joins_what_is_there_or_begins_it(play: Playing) -> None:
    talk = sequence(begin("ask", "talk join"), ANSWER, receive("spell", "talk join"), put("'x'", "trace"), SPELL)
    stage = play(process(talk))
    assert stage.ask(4) == "4"
    assert stage.spell(4) == "x"


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([receive("spell", "talk no"), put("'x'", "trace"), SPELL], "!correlationViolation"),
    ],
)
def test_following_a_set_that_nobody_began_is_a_violation(play: Playing, steps: list[str], says: str) -> None:
    stage = play(process(sequence(begin(), ECHO, *steps, reply())))
    assert stage.ask() == says


def test_beginning_a_set_twice_is_a_violation(play: Playing) -> None:
    stage = play(process(sequence(begin("ask", "talk yes"), ANSWER, receive("spell", "talk yes"), SPELL)))
    stage.ask(1)
    assert stage.spell(1) == "!correlationViolation"


@pytest.mark.parametrize(("value", "says"), [("$question.in", "4"), ("$question.in + 1", "!correlationViolation")])
def test_a_reply_holds_to_its_conversation(play: Playing, value: str, says: str) -> None:
    stage = play(process(sequence(begin("ask", "talk yes"), put(value, "answer.out"), reply("ask", "talk no"))))
    assert stage.ask(4) == says


def test_a_reply_begins_a_conversation(play: Playing) -> None:
    talk = sequence(
        begin(), put("$question.in + 100", "answer.out"), reply("ask", "talk yes"), receive("spell", "talk no"), SPELL
    )
    stage = play(process(talk))
    assert stage.ask(1) == "101"
    assert stage.spell(101) == ""


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["talk yes"], "!correlationViolation"),
        (["talk no"], "ok"),
        (["talk no request"], "ok"),
        (["talk no request-response"], "ok"),
        (["talk no response"], "ok"),
        (["aside yes request"], "ok"),
        (["aside yes response"], "ok"),
        (["aside yes request-response"], "!correlationViolation"),
        (["aside join request-response"], "ok"),
        (["aside no request"], "!correlationViolation"),
        (["talk no request", "aside yes response"], "ok"),
    ],
)
def test_calls_hold_to_conversations_in_both_directions(play: Playing, sets: list[str], says: str) -> None:
    """The word begins the talk, and the shop gives what was wished for."""
    found = [each if len(each.split()) == 3 else f"{each} request" for each in sets]
    steps = put("$word.in", "wish.in"), invoke("buy", *found), put("'ok'", "trace")
    stage = play(process(sequence(begin("spell", "talk yes"), *steps, SPELL)))
    assert stage.spell(3) == says


def test_a_call_begins_a_conversation_with_what_it_sends(play: Playing) -> None:
    steps = put("$question.in + 1", "hint.in"), invoke("hint", "talk yes"), receive("spell", "talk no"), SPELL
    stage = play(process(sequence(begin(), ANSWER, *steps)))
    assert stage.ask(1) == "1"
    assert stage.spell(2) == ""
    assert stage.calls == ["hint2"]


def test_calls_take_parts_and_empty_messages(play: Playing) -> None:
    parts = (
        '<invoke partnerLink="shop" operation="buy"><toParts><toPart part="in" fromVariable="number"/></toParts>'
        '<fromParts><fromPart part="out" toVariable="unset"/></fromParts></invoke>'
    )
    stage = play(process(traced(put("8", "number"), parts, note_value("$unset"), invoke("nudge"))))
    assert stage.spell() == "8"
    assert stage.calls == ["8", "nudge"]


def test_receive_and_reply_take_parts(play: Playing) -> None:
    text = process(
        sequence(
            '<receive partnerLink="desk" operation="ask" createInstance="yes"><fromParts>'
            '<fromPart part="in" toVariable="number"/></fromParts></receive>',
            put("$number + 1", "number"),
            '<reply partnerLink="desk" operation="ask"><toParts>'
            '<toPart part="out" fromVariable="number"/></toParts></reply>',
        )
    )
    assert play(text).ask(4) == "5"


def test_elements_stand_for_messages_of_one_element(play: Playing) -> None:
    variables = '<variable name="q" element="d:question"/><variable name="a" element="d:answer"/>'
    text = process(
        sequence(
            '<receive partnerLink="desk" operation="ask" variable="q" createInstance="yes"/>',
            assign(copy("$q + 1", '<to variable="a"/>')),
            '<reply partnerLink="desk" operation="ask" variable="a"/>',
        ),
        variables=variables,
    )
    assert play(text).ask(4) == "5"
    wish = '<variable name="w" element="s:wish"/><variable name="g" element="s:goods"/>'
    call = '<invoke partnerLink="shop" operation="buy" inputVariable="w" outputVariable="g"/>'
    assert play(process(traced(put("2", "w"), call, note_value("$g")), variables=wish)).spell() == "2"


@pytest.mark.parametrize(
    "step",
    [
        invoke("buy"),
        reply("spell"),
        "<if><condition>$unset = 1</condition><empty/></if>",
        "<wait><for>$unset</for></wait>",
        '<validate variables="order"/>',
        put("$order/d:item", "number"),
    ],
)
def test_what_holds_nothing_cannot_be_used(spelled: Spelled, step: str) -> None:
    assert spelled(process(traced(step))) == "!uninitializedVariable"


# Replies


def test_a_declared_fault_is_an_answer(play: Playing) -> None:
    refusing = put("3", "refusal.payload") + reply("ask", variable="refusal", fault="d:refused")
    stage = play(process(sequence(begin(), refusing, note("x"))))
    assert stage.ask() == "!refused(3)"
    assert stage.statuses == ["completed"]


def test_a_fault_that_nobody_declared_is_an_answer_all_the_same(play: Playing) -> None:
    refusing = put("3", "refusal.payload") + reply("ask", variable="refusal", fault="p:strange")
    assert play(process(sequence(begin(), refusing))).ask() == "!strange(3)"


def test_a_reply_without_a_request_is_a_fault(play: Playing) -> None:
    stage = play(process(sequence(begin(), ANSWER, scope(handlers(all=buy(1)), reply()), "<empty/>")))
    assert stage.ask(2) == "2"
    assert stage.calls == ["1"]
    missing = sequence(begin(), ECHO, put("''", "spelling.out"), reply("spell"))
    assert play(process(missing)).ask() == "!missingRequest"


def test_a_case_that_ends_without_a_reply_is_a_fault(play: Playing) -> None:
    stage = play(process(sequence(begin(), "<empty/>")))
    assert stage.ask() == "!missingReply"


def test_a_fault_handler_may_still_reply(play: Playing) -> None:
    text = process(
        handlers(all=put("9", "answer.out") + reply())
        .replace("<catchAll>", "<catchAll><sequence>")
        .replace("</catchAll>", "</sequence></catchAll>"),
        sequence(begin(), throw("p:no")),
    )
    assert play(text).ask() == "9"


def exchanging(order: str) -> str:
    """Two requests of one operation in exchanges of their own, answered in this order: `first second`."""
    one, two = order.split()
    return sequence(
        receive("ask", "talk yes", creates=True, exchange="first"),
        ECHO,
        receive("ask", "talk no", exchange="second"),
        put("1", "answer.out"),
        reply("ask", exchange=one),
        put("2", "answer.out"),
        reply("ask", exchange=two),
    )


@pytest.mark.parametrize(("order", "answers"), [("first second", ("1", "2")), ("second first", ("2", "1"))])
def test_exchanges_tell_requests_apart(play: Playing, order: str, answers: tuple[str, str]) -> None:
    stage = play(process(exchanging(order)))
    first, second = stage.send("ask", 5), stage.send("ask", 5)
    assert (stage.answer(first), stage.answer(second)) == answers


def test_a_second_request_in_an_open_exchange_is_a_fault(play: Playing) -> None:
    stage = play(process(sequence(begin("ask", "talk yes"), ECHO, receive("ask", "talk no"), reply())))
    first, second = stage.send("ask", 5), stage.send("ask", 5)
    assert {stage.answer(first), stage.answer(second)} == {"!conflictingRequest"}


def test_two_who_wait_for_the_same_are_a_fault(play: Playing) -> None:
    both = flow(receive("tell", "talk no"), receive("tell", "talk no"))
    stage = play(process(sequence(begin("ask", "talk yes"), ECHO, both, reply())))
    assert stage.ask(1) == "!conflictingReceive"


def test_a_message_that_fits_two_is_a_fault_for_both(play: Playing) -> None:
    both = flow(receive("tell", "talk no"), receive("tell", "aside no"))
    start = sequence(begin("ask", "talk yes", "aside yes"), ECHO, both, reply())
    stage = play(process(start))
    waiting = stage.send("ask", 1)
    stage.tell(1)
    assert stage.answer(waiting) == "!ambiguousReceive"


# Picks


def test_a_pick_takes_what_comes_first(play: Playing) -> None:
    choice = pick(
        on_message("tell", note("t"), "talk no"),
        on_message("ask", sequence(ECHO, reply(), note("a")), "talk no"),
        f"<onAlarm><for>'PT3S'</for>{note('z')}</onAlarm>",
    )
    for send, says in ((None, "z"), ("tell", "t"), ("ask", "a")):
        stage = play(process(sequence(begin("spell", "talk yes"), choice, SPELL)))
        waiting = stage.send("spell", 1)
        if send is not None:
            stage.send(send, 1)
        assert stage.answer(waiting) == says


@pytest.mark.parametrize(
    ("alarm", "says"),
    [
        ("<for>'PT1S'</for>", "z"),
        ("<until>'2023-11-14T22:13:25Z'</until>", "z"),
        ("<until>'2000-01-01'</until>", "z"),
        ("<for>'x'</for>", "!invalidExpressionValue"),
        ("<until>'x'</until>", "!invalidExpressionValue"),
        ("<for>$unset</for>", "!uninitializedVariable"),
    ],
)
def test_the_alarm_of_a_pick_goes_off_when_it_should(spelled: Spelled, alarm: str, says: str) -> None:
    choice = pick(on_message("tell", note("t"), "talk no"), f"<onAlarm>{alarm}{note('z')}</onAlarm>")
    assert spelled(process(sequence(begin("spell", "talk yes"), choice, SPELL))) == says


def test_a_pick_begins_cases_with_any_of_its_messages(play: Playing) -> None:
    text = process(
        pick(on_message("ask", sequence(ANSWER)), on_message("spell", sequence(note("s"), SPELL)), creates=True)
    )
    stage = play(text)
    assert (stage.ask(4), stage.spell(5)) == ("4", "s")
    assert stage.statuses == ["completed", "completed"]


def test_two_starts_of_one_case_find_each_other(play: Playing) -> None:
    both = flow(receive("tell", "talk join", creates=True), sequence(receive("ask", "talk join", creates=True), ECHO))
    stage = play(process(sequence(both, reply())))
    waiting = stage.send("ask", 1)
    other = stage.send("ask", 2)
    assert "waits" == stage.answer(waiting) == stage.answer(other)
    stage.tell(2)
    stage.tell(1)
    assert (stage.answer(waiting), stage.answer(other)) == ("1", "2")
    assert stage.statuses == ["completed", "completed"]


def test_turns_that_run_side_by_side_answer_their_own_requests(play: Playing) -> None:
    own = '<correlationSets><correlationSet name="own" properties="d:id"/></correlationSets>'
    mine = (
        '<variables><variable name="question" messageType="d:questionMessage"/>'
        '<variable name="answer" messageType="d:answerMessage"/>'
        '<variable name="hint" messageType="s:hintMessage"/></variables>'
    )
    body = (
        mine
        + own
        + sequence(put("$n", "hint.in"), invoke("hint", "own yes"), receive("ask", "own no"), ECHO, wait(1), reply())
    )
    stage = play(process(sequence(begin("tell"), for_each(body, last="2", parallel=True))))
    stage.tell()
    assert stage.calls == ["hint1", "hint2"]
    first, second = stage.send("ask", 2), stage.send("ask", 1)
    assert (stage.answer(first), stage.answer(second)) == ("2", "1")


def test_catching_a_conflict_leaves_the_first_request_to_be_answered(play: Playing) -> None:
    second = scope(handlers(catch("bpel:conflictingRequest", note("c"))), receive("ask", "talk no"))
    stage = play(process(sequence(begin("ask", "talk yes"), ECHO, second, reply())))
    first = stage.send("ask", 5)
    stage.send("ask", 5)
    assert stage.answer(first) == "5"


def test_the_operation_that_begins_cases_also_goes_on_with_them(play: Playing) -> None:
    talk = begin("ask", "talk yes"), ANSWER, receive("ask", "talk no"), put("$question.in * 2", "answer.out"), reply()
    stage = play(process(sequence(*talk)))
    assert [stage.ask(each) for each in (4, 5, 4)] == ["4", "5", "8"]


def test_values_correlate_by_what_they_mean(play: Playing) -> None:
    stage = play(process(sequence(begin("ask", "talk yes"), ANSWER, receive("spell", "talk no"), SPELL)))
    stage.ask(" 05 ")
    assert stage.spell("5") == ""


def test_a_request_taken_in_a_scope_that_failed_is_still_answered(play: Playing) -> None:
    failing = scope(
        handlers(all=sequence(ECHO, reply())), sequence(receive("ask", "talk no"), throw("p:no")), name="failing"
    )
    stage = play(process(sequence(begin("spell", "talk yes"), failing, SPELL)))
    waiting = stage.send("spell", 7)
    assert (stage.ask(7), stage.answer(waiting)) == ("7", "")


def test_who_is_ended_while_it_listens_listens_no_more(play: Playing) -> None:
    ended = scope(handlers(all=note("x")), flow(receive("ask", "talk no"), sequence(wait(1), throw("p:no"))))
    stage = play(process(sequence(begin("spell", "talk yes"), ended, receive("ask", "talk no"), ANSWER, SPELL)))
    waiting = stage.send("spell", 1)
    stage.pass_by(2)
    assert (stage.ask(1), stage.answer(waiting)) == ("1", "x")


def test_an_exchange_of_a_scope_is_answered_before_it_is_over(play: Playing) -> None:
    own = "<messageExchanges><messageExchange name='mine'/></messageExchanges>"
    late = catch("bpel:missingReply", sequence(note("m"), put("4", "answer.out"), reply("ask", exchange="mine")))
    inner = scope(own, handlers(late), receive("ask", "talk no", exchange="mine"))
    stage = play(process(sequence(begin("spell", "talk yes"), inner, SPELL)))
    waiting = stage.send("spell", 7)
    assert (stage.ask(7), stage.answer(waiting)) == ("4", "m")
