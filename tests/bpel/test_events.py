"""Event handlers: alarms once and again and again, messages that come at any time. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.conftest import Playing
from tests.bpel.documents import (
    SPELL,
    begin,
    catch,
    correlations,
    flow,
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
    undoing,
    wait,
)

Spelled = Callable[[str], str]

CATCH_ALL = handlers(all=note("x"))


def events(*each: str) -> str:
    return f"<eventHandlers>{''.join(each)}</eventHandlers>"


def on_alarm(when: str, *inside: str) -> str:
    return f"<onAlarm>{when}{scope(*inside)}</onAlarm>"


def on_event(
    operation: str, *inside: str, sets: tuple[str, ...] = ("talk no",), attributes: str = "", variable: str = "news"
) -> str:
    """A handler whose variable is its own."""
    types = {"tell": "newsMessage", "ask": "questionMessage", "spell": "wordMessage"}
    return (
        f'<onEvent partnerLink="desk" operation="{operation}" messageType="d:{types[operation]}" variable="{variable}" '
        f"{attributes}>{correlations(*sets)}{scope(*inside)}</onEvent>"
    )


def watched(handler: str, *body: str, before: str = "") -> str:
    """A conversation whose middle is a scope with these handlers."""
    return process(sequence(begin("spell", "talk yes"), scope(before, events(handler), sequence(*body)), SPELL))


@pytest.mark.parametrize(
    ("when", "seconds", "says"),
    [
        ("<for>'PT2S'</for>", 5, "t"),
        ("<for>'PT9S'</for>", 5, ""),
        ("<until>'2023-11-14T22:13:22Z'</until>", 5, "t"),
        ("<until>'2000-01-01T00:00:00Z'</until>", 5, "t"),
        ("<repeatEvery>'PT2S'</repeatEvery>", 5, "tt"),
        ("<for>'PT3S'</for><repeatEvery>'PT1S'</repeatEvery>", 5.5, "ttt"),
        ("<until>'2023-11-14T22:13:21Z'</until><repeatEvery>'PT2S'</repeatEvery>", 6, "ttt"),
        ("<for>'x'</for>", 5, "!invalidExpressionValue"),
        ("<repeatEvery>'x'</repeatEvery>", 5, "!invalidExpressionValue"),
        ("<for>$unset</for>", 5, "!uninitializedVariable"),
    ],
)
def test_alarms_go_off_when_they_should(spelled: Spelled, when: str, seconds: float, says: str) -> None:
    assert spelled(watched(on_alarm(when, note("t")), wait(seconds))) == says


def test_an_alarm_that_is_over_when_its_scope_is_says_nothing(spelled: Spelled) -> None:
    inner = scope(events(on_alarm("<for>'PT2S'</for>", note("t"))), wait(1))
    assert spelled(process(traced(inner, wait(5)))) == ""


def test_a_scope_waits_for_the_handlers_that_run(spelled: Spelled) -> None:
    assert spelled(watched(on_alarm("<for>'PT1S'</for>", sequence(wait(5), note("t"))), wait(2), note("b"))) == "bt"


def test_a_fault_in_a_handler_is_a_fault_of_its_scope(spelled: Spelled) -> None:
    failing = on_alarm("<for>'PT1S'</for>", throw("p:no"))
    assert spelled(watched(failing, wait(9), before=handlers(catch("p:no", note("c"))))) == "c"
    saved = on_alarm("<for>'PT1S'</for>", CATCH_ALL, throw("p:no"))
    assert spelled(watched(saved, wait(2), note("b"))) == "xb"


def test_a_fault_in_the_scope_ends_the_handlers_that_run(spelled: Spelled) -> None:
    slow = on_alarm("<for>'PT1S'</for>", "<terminationHandler>" + note("t") + "</terminationHandler>", wait(9))
    assert spelled(watched(slow, wait(2), throw("p:no"), before=CATCH_ALL)) == "tx"


def test_what_a_handler_did_is_undone_with_its_scope(spelled: Spelled) -> None:
    did = on_alarm("<for>'PT1S'</for>", undoing(note("U")), note("u"))
    inner = scope(events(did), wait(2))
    around = scope(handlers(all="<compensate/>"), sequence(inner, throw("p:no")))
    assert spelled(process(traced(around))) == "uU"


def test_messages_are_taken_as_often_as_they_come(play: Playing) -> None:
    stage = play(watched(on_event("tell", note_value("$news.in")), wait(5), note("b")))
    waiting = stage.send("spell", 3)
    stage.tell(3)
    stage.tell(3)
    assert stage.answer(waiting) == "33b"


def test_handlers_of_messages_run_side_by_side_each_with_its_own(play: Playing) -> None:
    body = sequence(wait(2), note_value("$news.in"))
    text = process(
        sequence(
            begin("spell"),
            scope(events(on_event("tell", body, sets=("own yes",)).replace("<scope ", "<scope ", 1)), wait(1)),
            SPELL,
        )
    )
    own = '<correlationSets><correlationSet name="own" properties="d:id"/></correlationSets>'
    text = text.replace("<scope ><sequence><wait><for>'PT2S'", f"<scope >{own}<sequence><wait><for>'PT2S'")
    stage = play(text)
    waiting = stage.send("spell", 3)
    stage.tell(1)
    stage.tell(2)
    assert stage.answer(waiting) == "12"


def test_a_handler_answers_the_request_that_it_took(play: Playing) -> None:
    body = sequence(put("$q.in", "answer.out"), reply())
    stage = play(watched(on_event("ask", body, variable="q"), wait(5)))
    waiting = stage.send("spell", 3)
    assert stage.ask(3) == "3"
    assert stage.ask(3) == "3"
    assert stage.answer(waiting) == ""


def test_a_handler_that_does_not_answer_is_missing_a_reply(play: Playing) -> None:
    text = watched(
        on_event("ask", note("a"), variable="q"), wait(5), before=handlers(catch("bpel:missingReply", note("m")))
    )
    stage = play(text)
    waiting = stage.send("spell", 3)
    stage.send("ask", 3)
    assert stage.answer(waiting) == "am"


def test_elements_and_parts_are_what_a_handler_takes(play: Playing) -> None:
    element = on_event("tell", note_value("$news + 1"), variable="news").replace(
        'messageType="d:newsMessage"', 'element="d:news"'
    )
    stage = play(watched(element, wait(5)))
    waiting = stage.send("spell", 3)
    stage.tell(3)
    assert stage.answer(waiting) == "4"
    parts = (
        '<onEvent partnerLink="desk" operation="tell">'
        + correlations("talk no")
        + '<fromParts><fromPart part="in" toVariable="it"/></fromParts>'
        + scope(note_value("$it + 2"))
        + "</onEvent>"
    )
    stage = play(watched(parts, wait(5)))
    waiting = stage.send("spell", 3)
    stage.tell(3)
    assert stage.answer(waiting) == "5"


def test_a_handler_of_the_process_listens_from_its_beginning_to_its_end(play: Playing) -> None:
    text = process(
        events(on_event("tell", note_value("$news.in"))), sequence(begin("spell", "talk yes"), wait(5), SPELL)
    )
    stage = play(text)
    early = stage.send("spell", 1)
    stage.tell(1)
    assert stage.answer(early) == "1"
    stage.tell(1)
    assert stage.mail, "nobody listens any more"


def test_an_alarm_of_the_process_begins_with_its_first_message(play: Playing) -> None:
    text = process(events(on_alarm("<for>'PT2S'</for>", note("t"))), sequence(begin("spell"), wait(3), SPELL))
    assert play(text).spell() == "t"


def test_a_handler_and_a_receive_for_the_same_are_in_conflict(play: Playing) -> None:
    stage = play(watched(on_event("tell", note("h")), receive("tell", "talk no")))
    assert stage.spell(1) == "!conflictingReceive"


def test_a_handler_calls_partners_and_waits_in_branches(play: Playing) -> None:
    body = flow(sequence(put("$news.in", "hint.in"), invoke("hint")), sequence(wait(1), note("w")))
    stage = play(watched(on_event("tell", body), wait(5)))
    waiting = stage.send("spell", 3)
    stage.tell(3)
    assert stage.answer(waiting) == "w"
    assert stage.calls == ["hint3"]


def test_exchanges_of_a_handlers_scope_are_its_own(play: Playing) -> None:
    own = "<messageExchanges><messageExchange name='mine'/></messageExchanges>"
    body = sequence(put("$q.in", "answer.out"), wait(1), reply("ask", exchange="mine"))
    handler = on_event("ask", own, body, variable="q", attributes='messageExchange="mine"')
    stage = play(watched(handler, wait(5)))
    waiting = stage.send("spell", 3)
    first, second = stage.send("ask", 3), stage.send("ask", 3)
    assert (stage.answer(first), stage.answer(second), stage.answer(waiting)) == ("3", "3", "")


@pytest.mark.parametrize(("initiate", "says"), [("yes", "tv"), ("join", "tt")])
def test_a_set_that_a_handler_begins_is_begun_once(play: Playing, initiate: str, says: str) -> None:
    handler = on_event("tell", note("t"), sets=(f"aside {initiate}",))
    around = scope(handlers(catch("bpel:correlationViolation", note("v"))), events(handler), wait(5))
    stage = play(process(sequence(begin("spell"), around, SPELL)))
    waiting = stage.send("spell", 3)
    stage.tell(1)
    stage.tell(1)
    assert stage.answer(waiting) == says


def test_a_handler_may_end_the_process(spelled: Spelled) -> None:
    assert spelled(watched(on_alarm("<for>'PT1S'</for>", "<exit/>"), wait(5))) == "ended"


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("<for>'PT0S'</for>", "r"),
        ("<repeatEvery>'PT0S'</repeatEvery>", "x"),
        ("<repeatEvery>'-PT1S'</repeatEvery>", "x"),
        ("<repeatEvery>'PT1S'</repeatEvery>", "rrr"),
    ],
)
def test_an_alarm_again_and_again_needs_time_between(spelled: Spelled, when: str, says: str) -> None:
    caught = handlers(catch("bpel:invalidExpressionValue", note("x")))
    assert spelled(watched(on_alarm(when, note("r")), wait(3.5), before=caught)) == says


def test_a_scope_that_failed_hears_nothing_more(play: Playing) -> None:
    caught = handlers(all=sequence(wait(2), note("h")))
    stage = play(watched(on_event("tell", note("e")), throw("p:no"), before=caught))
    waiting = stage.send("spell", 1)
    stage.tell(1)
    assert stage.answer(waiting) == "h"
