"""Correlation sets: which message is of which conversation. FM-2"""

import pytest

from mendflow.core.engine.messages import CallPartner, ListenerAdded
from mendflow.core.engine.xml import listeners
from mendflow.core.engine.xml.listeners import match_kind
from mendflow.core.model.flow import Activity, Assign, Catch, Empty, ForEach, Invoke, Parallel, Scope
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.xml import ScopeDeclarations, XmlMessage
from tests.core.engine.world import Play
from tests.core.engine.xml.conversations import (
    ID,
    answered,
    deep,
    fault_of,
    process,
    put,
    receive,
    reply,
    said,
    sequence,
    sets,
    step,
    talking,
)


def begun(*steps: Activity, id: int = 1) -> Play:
    """A case whose set `talk` was begun with this id, and that goes on with the steps."""
    play = talking(sequence("s", receive("first", "tell", talk="yes"), *steps))
    return play.send("link.tell", said(id))


def test_who_follows_a_set_hears_its_conversation_and_no_other() -> None:
    play = begun(receive("next", "ask", talk="no"), step("a"))
    assert match_kind(play.case, "link.ask", said(2)) == "no"
    assert match_kind(play.case, "link.ask", said(1)) == "correlated"
    play.send("link.ask", said(2))
    assert play.jobs == []
    play.send("link.ask", said(1))
    assert play.jobs == ["a"]


def test_who_begins_a_set_hears_everybody() -> None:
    play = talking(sequence("s", receive("first", "tell", talk="yes"), step("a")))
    assert match_kind(play.case, "link.tell", said(7)) == "plain"
    assert match_kind(play.case, "link.ask", said(7)) == "no"


def test_a_property_is_found_by_the_query_of_its_alias_and_compared_by_its_type() -> None:
    play = begun(receive("next", "tellDeep", talk="no"), step("a"), id=12)
    assert match_kind(play.case, "link.tellDeep", deep(1)) == "no"
    play.send("link.tellDeep", deep(12))  # there it is a text with blanks around it
    assert play.jobs == ["a"]


def test_a_property_may_take_less_work_while_a_message_has_no_case_than_in_its_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A journal may have such a message, and a replay gives what it gave. SE-3"""
    monkeypatch.setattr(listeners, "ROUTING_WORK_MAX", 0)
    play = begun(receive("next", "tellDeep", talk="no"), step("a"), id=12)
    assert match_kind(play.case, "link.tellDeep", deep(12)) == "no"
    play.send("link.tellDeep", deep(12))
    assert play.jobs == ["a"]


def test_a_message_without_the_property_is_of_no_conversation() -> None:
    play = begun(receive("next", "tellDeep", talk="no"))
    assert match_kind(play.case, "link.tellDeep", {"body": {"$xml": '<t:body xmlns:t="urn:t"/>'}}) == "no"


def test_the_first_of_several_that_join_begins_the_set_and_the_others_follow() -> None:
    both = Parallel(
        name="p",
        branches=(
            sequence("s1", receive("one", "tell", talk="join"), step("a")),
            sequence("s2", receive("two", "ask", talk="join"), reply("r"), step("b")),
        ),
    )
    play = talking(both)
    assert match_kind(play.case, "link.ask", said(5)) == "plain"
    play.send("link.tell", said(5))
    assert match_kind(play.case, "link.ask", said(6)) == "no"
    assert match_kind(play.case, "link.ask", said(5)) == "correlated"
    play.send("link.ask", said(5))
    assert play.jobs == ["a", "b"]


def test_a_set_is_begun_once() -> None:
    play = begun(receive("again", "ask", talk="yes"))
    assert play.status == "running", "it is the message that would begin it again"
    assert match_kind(play.case, "link.ask", said(1)) == "correlated"
    play.send("link.ask", said(1))
    assert fault_of(play) == "correlationViolation"


def test_who_would_begin_a_set_again_refuses_other_conversations_too() -> None:
    play = begun(receive("again", "ask", talk="yes"))
    assert match_kind(play.case, "link.ask", said(2)) == "plain"
    play.send("link.ask", said(2))
    assert fault_of(play) == "correlationViolation"


def test_nobody_follows_a_set_that_was_not_begun() -> None:
    assert fault_of(talking(receive("r", "tell", talk="no"))) == "correlationViolation"


def test_a_message_must_be_of_all_conversations_at_once() -> None:
    first = receive("first", "tell", talk="yes")
    second = receive("second", "tell", aside="yes")
    play = talking(sequence("s", first, second, receive("third", "ask", talk="no", aside="no")))
    play.send("link.tell", said(1)).send("link.tell", said(2))
    assert match_kind(play.case, "link.ask", said(1)) == "no"
    assert match_kind(play.case, "link.ask", said(2)) == "no"


def test_a_message_that_fits_two_who_listen_with_other_sets_fails_both() -> None:
    receives = Parallel(name="p", branches=(receive("r1", "ask", talk="no"), receive("r2", "ask", aside="no")))
    body = sequence("s", receive("first", "tell", talk="yes", aside="yes"), receives)
    play = talking(body).send("link.tell", said(1)).send("link.ask", said(1))
    assert fault_of(play) == "ambiguousReceive"


def test_two_who_listen_with_the_same_set_are_in_conflict_at_once() -> None:
    receives = Parallel(name="p", branches=(receive("r1", "ask", talk="no"), receive("r2", "ask", talk="no")))
    assert fault_of(begun(receives)) == "conflictingReceive"


def test_sets_of_turns_are_sets_of_their_own() -> None:
    own = ScopeDeclarations(correlation_sets={"turn": (ID,)})
    inner = sequence("t", receive("one", "tell", turn="yes"), receive("two", "ask", turn="no"), reply("r"))
    loop = ForEach(name="f", first=1, last=2, parallel=False, body=Scope(name="scope", body=inner, declared=own))
    play = talking(loop)
    for id in (1, 2):
        play.send("link.tell", said(id))
        assert match_kind(play.case, "link.ask", said(3 - id)) == "no"
        play.send("link.ask", said(id))
    assert play.status == "completed"


def test_nobody_can_tell_apart_turns_that_each_begin_a_set_of_their_own_at_once() -> None:
    own = ScopeDeclarations(correlation_sets={"turn": (ID,)})
    inner = Scope(name="scope", body=receive("one", "tell", turn="yes"), declared=own)
    play = talking(ForEach(name="f", first=1, last=2, parallel=True, body=inner))
    assert fault_of(play.send("link.tell", said(1))) == "ambiguousReceive"


def test_a_reply_is_held_against_its_set() -> None:
    wrong = Assign(name="other", xml=(put("answer", "id", "2"),))
    play = begun(receive("next", "ask", talk="no"), wrong, reply("r", talk="no"))
    play.send("link.ask", said(1))
    assert fault_of(play) == "correlationViolation"
    assert answered(play) == []


def test_a_reply_begins_a_set_that_later_messages_follow() -> None:
    body = sequence("s", receive("first", "ask"), reply("r", aside="yes"), receive("next", "tell", aside="no"))
    play = talking(body).send("link.ask", said(9))
    assert match_kind(play.case, "link.tell", said(1)) == "correlated"
    assert match_kind(play.case, "link.tell", said(9)) == "no"


def test_nothing_changes_where_one_of_several_sets_is_violated() -> None:
    caught = Scope(
        name="scope",
        body=sequence("t", receive("next", "ask"), reply("r", aside="yes", talk="yes")),
        catches=(Catch(fault="correlationViolation", body=Empty(name="e")),),
    )
    play = begun(caught, receive("last", "tell", aside="yes"), step("a"))
    play.send("link.ask", said(1)).send("link.tell", said(3))
    assert play.jobs == ["a"], "the set was not begun by the reply that could not be sent"


def test_whoever_listens_is_told_when_a_set_is_begun_that_it_listens_with() -> None:
    play = begun(receive("next", "ask", talk="no"))
    assert [order.channel for order in play.given if isinstance(order, ListenerAdded)].count("link.ask") == 1
    body = sequence("s", receive("first", "ask"), reply("r", aside="yes"), step("a"))
    beside = Parallel(name="p", branches=(body, receive("other", "tell", aside="join")))
    play = talking(beside).send("link.ask", said(1))
    assert [order.channel for order in play.given if isinstance(order, ListenerAdded)].count("link.tell") == 2


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_a_case_that_was_read_again_follows_the_same_conversations(with_snapshot: bool) -> None:
    play = begun(receive("next", "ask", talk="no"), reply("r", talk="no"), step("a"))
    play.crash(with_snapshot=with_snapshot)
    assert match_kind(play.case, "link.ask", said(2)) == "no"
    play.send("link.ask", said(1))
    play.crash(with_snapshot=with_snapshot)
    assert play.jobs == ["a"]


def test_an_invoke_is_held_against_its_sets_before_it_goes_out_and_when_it_is_answered() -> None:
    sends = XmlMessage(partner_link="partner", operation="ask", variable="question", correlations=sets(talk="no"))
    gets = XmlMessage(partner_link="partner", operation="ask", variable="answer", correlations=sets(talk="no"))
    call = Invoke(name="call", partner="partner", operation="ask", sends=sends, gets=gets)
    flow = process(
        sequence("s", receive("first", "tell", talk="yes"), receive("other", "ask"), call, reply("r")), calls=True
    )
    play = Play(flow).send("link.tell", said(1)).send("link.ask", said(2))
    assert fault_of(play) == "correlationViolation"
    assert not [order for order in play.given if isinstance(order, CallPartner)]
    play = Play(flow).send("link.tell", said(1)).send("link.ask", said(1))
    play.finish(play.serial("call"), Outcome(outputs=said(5)))
    assert fault_of(play) == "correlationViolation"
    play = Play(flow).send("link.tell", said(1)).send("link.ask", said(1))
    play.finish(play.serial("call"), Outcome(outputs=said(1)))
    assert len(answered(play)) == 1
