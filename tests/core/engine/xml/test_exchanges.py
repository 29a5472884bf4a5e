"""Message exchanges: which reply answers which request, and what is owed when a scope ends. FM-2"""

import pytest

from mendflow.core.engine.messages import SendReply
from mendflow.core.model.flow import Catch, Empty, Exit, ForEach, OnAlarm, Parallel, Scope, Throw
from mendflow.core.model.xml import PartnerLink, ScopeDeclarations
from tests.core.engine.xml.conversations import (
    LINK,
    SORRY,
    answered,
    fault_of,
    receive,
    reply,
    said,
    sequence,
    step,
    talking,
)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_requests_in_two_exchanges_are_answered_in_any_order(order: tuple[str, str]) -> None:
    heard = (receive("r1", "ask", exchange="a"), receive("r2", "ask", "other", exchange="b"))
    play = talking(sequence("s", *heard, *(reply(f"to-{each}", exchange=each) for each in order)), exchanges=("a", "b"))
    play.send("link.ask", said(1), id="a").send("link.ask", said(1), id="b")
    assert answered(play) == list(order)
    assert play.status == "completed"


def test_a_second_request_in_the_same_exchange_conflicts_with_the_first() -> None:
    play = talking(sequence("s", receive("r1", "ask"), receive("r2", "ask", "other"), reply("r")))
    play.send("link.ask", said(1)).send("link.ask", said(1))
    assert fault_of(play) == "conflictingRequest"


def test_requests_of_other_operations_do_not_conflict() -> None:
    play = talking(sequence("s", receive("r1", "ask"), receive("r2", "begin"), reply("a"), reply("b", "begin")))
    play.send("link.ask", said(1), id="x").send("link.begin", said(1), id="y")
    assert answered(play) == ["x", "y"]


def test_a_reply_without_a_request_in_its_exchange_misses_one() -> None:
    play = talking(sequence("s", receive("r1", "ask", exchange="a"), reply("r", exchange="b")), exchanges=("a", "b"))
    assert fault_of(play.send("link.ask", said(1))) == "missingRequest"


def test_a_reply_with_a_fault_says_which_and_with_which_message() -> None:
    play = talking(sequence("s", receive("r1", "ask"), reply("r", fault="{urn:t}sorry"))).send("link.ask", said(1))
    [sent] = [order for order in play.given if isinstance(order, SendReply)]
    assert (sent.fault, sent.message_type, sent.value) == ("{urn:t}sorry", SORRY, said(1, "yes"))
    assert play.status == "completed"


def test_an_operation_without_an_answer_opens_nothing() -> None:
    assert talking(receive("r", "tell")).send("link.tell", said(1)).status == "completed"


def test_a_process_that_ends_without_an_answer_misses_a_reply_and_can_catch_that() -> None:
    assert fault_of(talking(receive("r", "ask")).send("link.ask", said(1))) == "missingReply"
    handler = Catch(fault="missingReply", body=reply("late"))
    play = talking(receive("r", "ask"), scope=Scope(name="x", body=step("x"), catches=(handler,)))
    assert answered(play.send("link.ask", said(1), id="m")) == ["m"]
    assert play.status == "completed"


def test_a_scope_misses_the_replies_of_its_own_exchanges_alone() -> None:
    own = ScopeDeclarations(exchanges=("mine",))
    inner = Scope(name="inner", body=receive("r", "ask", exchange="mine"), declared=own)
    play = talking(sequence("s", inner, step("a")))
    assert fault_of(play.send("link.ask", said(1))) == "missingReply"
    outer = Scope(name="inner", body=receive("r", "ask", exchange="outer"), declared=own)
    play = talking(sequence("s", outer, reply("to", exchange="outer")), exchanges=("outer",))
    assert play.send("link.ask", said(1)).status == "completed"


def test_a_scope_misses_the_replies_on_its_own_partner_links() -> None:
    own = ScopeDeclarations(partner_links={"link": LINK})
    inner = Scope(name="inner", body=receive("r", "ask", exchange="outer"), declared=own)
    play = talking(sequence("s", inner, step("a")), exchanges=("outer",))
    assert fault_of(play.send("link.ask", said(1))) == "missingReply"


def test_partner_links_of_the_same_name_have_exchanges_of_their_own() -> None:
    own = ScopeDeclarations(partner_links={"link": PartnerLink(type="{urn:t}Link", mine=LINK.mine)})
    inner = Scope(
        name="inner",
        declared=own,
        body=sequence("t", receive("r2", "ask", "other", exchange="x"), reply("to-2", exchange="x")),
    )
    play = talking(
        sequence("s", receive("r1", "ask", exchange="x"), inner, reply("to-1", exchange="x")), exchanges=("x",)
    )
    play.send("link.ask", said(1), id="one").send("link.ask", said(1), id="two")
    assert answered(play) == ["two", "one"]


def test_a_handler_that_leaves_a_request_open_leaves_it_to_the_scope_around() -> None:
    own = ScopeDeclarations(exchanges=("mine",))
    inner = Scope(
        name="inner",
        declared=own,
        body=sequence("t", receive("r", "ask", exchange="mine"), Throw(name="throw", fault="{urn:t}oops")),
        catches=(Catch(fault=None, body=Empty(name="e")),),
    )
    outer = Scope(name="outer", body=inner, catches=(Catch(fault="missingReply", body=step("a")),))
    play = talking(outer).send("link.ask", said(1))
    assert play.jobs == ["a"]


def test_what_another_fault_leaves_open_is_not_told_again() -> None:
    inner = Scope(
        name="inner",
        declared=ScopeDeclarations(exchanges=("mine",)),
        body=sequence("t", receive("r", "ask", exchange="mine"), Throw(name="throw", fault="{urn:t}oops")),
    )
    assert fault_of(talking(inner).send("link.ask", said(1))) == "{urn:t}oops"


def test_each_turn_of_a_parallel_loop_answers_its_own_request() -> None:
    body = sequence("t", receive("r", "ask", talk="join"), step("a"), reply("to"))
    loop = ForEach(name="f", first=1, last=2, parallel=True, max_parallel=1, body=Scope(name="scope", body=body))
    play = talking(loop).send("link.ask", said(1), id="one").done("a[0]")
    play.send("link.ask", said(1), id="two").done("a[1]")
    assert answered(play) == ["one", "two"]
    assert play.status == "completed"


def test_a_turn_that_ends_without_an_answer_misses_a_reply() -> None:
    scope = Scope(
        name="scope",
        body=receive("r", "ask"),
        catches=(Catch(fault="missingReply", body=reply("late")),),
    )
    loop = ForEach(name="f", first=1, last=1, parallel=True, body=scope)
    assert answered(talking(loop).send("link.ask", said(1), id="m")) == ["m"]


def test_an_alarm_replies_to_the_request_of_its_process() -> None:
    waits = Scope(name="x", body=step("x"), alarms=(OnAlarm(duration=10, body=reply("late")),))
    play = talking(sequence("s", receive("r", "ask"), step("a")), scope=waits)
    play.send("link.ask", said(1), id="m").ring()
    assert answered(play) == ["m"]


def test_a_process_that_exits_owes_nothing() -> None:
    play = talking(sequence("s", receive("r", "ask"), Exit(name="exit"))).send("link.ask", said(1))
    assert (play.status, play.case.exited) == ("completed", True)


def test_messages_that_nobody_heard_are_known_when_the_case_is_over() -> None:
    play = talking(sequence("s", receive("r", "tell", talk="yes"), receive("q", "tell", talk="no"), step("a")))
    play.send("link.tell", said(1), id="m1").send("link.tell", said(2), id="m2").send("link.tell", said(1), id="m3")
    assert play.case.messages_waiting() == ["m2"]
    play.done("a")
    assert (play.status, play.case.undelivered) == ("completed", ["m2"])
    assert play.replayed().undelivered == ["m2"]


def test_parallel_requests_are_answered_each_by_the_reply_of_its_exchange() -> None:
    branch = [
        sequence(f"s{each}", receive(f"r{each}", op, exchange=each), step(each), reply(f"to-{each}", op, exchange=each))
        for each, op in (("a", "ask"), ("b", "begin"))
    ]
    play = talking(Parallel(name="p", branches=tuple(branch)), exchanges=("a", "b"))
    play.send("link.begin", said(1), id="2").send("link.ask", said(1), id="1").done("a").done("b")
    assert answered(play) == ["1", "2"]
