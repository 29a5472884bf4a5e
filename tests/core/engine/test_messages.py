"""Receive, reply, pick and invoke; channels and correlation."""

import pytest

from mendflow.core.engine.messages import CallPartner, SendReply
from mendflow.core.model.errors import RequestError
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Catch,
    Empty,
    Invoke,
    JobActivity,
    OnAlarm,
    OnMessage,
    Parallel,
    Pick,
    Receive,
    Reply,
    Scope,
    Sequence,
    While,
)
from mendflow.core.model.jobs import Outcome
from tests.core.engine.world import Play, failed, started


def sequence(name: str, *body: Activity) -> Sequence:
    return Sequence(name=name, body=body)


def look(text: str) -> JobActivity:
    return JobActivity(name="look", command=text)


def fault_of(play: Play) -> str:
    assert play.ended.fault is not None
    return play.ended.fault.name


def replies(play: Play) -> list[SendReply]:
    return [order for order in play.given if isinstance(order, SendReply)]


def test_a_receive_waits_for_its_message() -> None:
    play = started(sequence("s", Receive(name="r", channel="in", variable="x"), look("${{ x.a }}")))
    assert play.jobs == []
    play.send("in", {"a": 5})
    assert play.command("look") == "5"


def test_a_message_that_came_early_waits_for_its_receive() -> None:
    body = sequence(
        "s", JobActivity(name="first", command="x"), Receive(name="r", channel="in", variable="x"), look("${{ x }}")
    )
    play = started(body)
    play.send("in", 1).send("in", 2)
    play.done("first")
    assert play.command("look") == "1"


def test_a_repeated_delivery_is_no_event() -> None:
    play = started(sequence("s", Receive(name="r", channel="in"), Receive(name="q", channel="in")))
    play.send("in", id="m").send("in", id="m")
    assert len(play.journal) == 2
    assert play.status == "running"


def test_a_message_goes_to_the_receive_with_its_correlation() -> None:
    first = Receive(name="r1", channel="in", correlation="${{ 1 }}", variable="x")
    second = Receive(name="r2", channel="in", correlation="${{ 2 }}", variable="x")
    jobs = (JobActivity(name="j1", command="x"), JobActivity(name="j2", command="x"))
    play = started(Parallel(name="p", branches=(sequence("s1", first, jobs[0]), sequence("s2", second, jobs[1]))))
    play.send("in", correlation=2)
    assert play.jobs == ["j2"]
    play.send("in", correlation=3)
    assert play.jobs == ["j2"]
    play.send("in", correlation=1)
    assert play.jobs == ["j2", "j1"]


def test_two_open_receives_for_the_same_messages_conflict() -> None:
    branches = (Receive(name="r1", channel="in"), Receive(name="r2", channel="in"))
    assert fault_of(started(Parallel(name="p", branches=branches))) == "conflictingReceive"


def test_a_reply_answers_the_request_and_stays_owed_until_it_was_taken() -> None:
    body = sequence(
        "s", Receive(name="r", channel="in", variable="x"), Reply(name="a", channel="in", value="${{ x + 1 }}")
    )
    play = started(body)
    play.send("in", 1, id="m1")
    [reply] = replies(play)
    assert (reply.message, reply.value) == ("m1", 2)
    assert play.status == "completed"
    assert reply in play.case.posted.values()
    play.finish(reply.serial, Outcome())
    assert not play.case.posted


def test_a_reply_may_be_a_fault() -> None:
    play = started(sequence("s", Receive(name="r", channel="in"), Reply(name="a", channel="in", fault="no")))
    assert replies(play.send("in"))[0].fault == "no"


def test_a_reply_without_a_request_is_a_fault() -> None:
    assert fault_of(started(Reply(name="a", channel="in"))) == "missingRequest"


def test_a_flow_that_ends_without_the_reply_it_owes_fails() -> None:
    answer = Reply(name="a", channel="in", when=Expr("1 > 2"))
    play = started(sequence("s", Receive(name="r", channel="in"), answer))
    assert fault_of(play.send("in")) == "missingReply"


def test_a_second_request_before_the_first_is_answered_conflicts() -> None:
    body = (Receive(name="r1", channel="in"), Receive(name="r2", channel="in"), Reply(name="a", channel="in"))
    play = started(sequence("s", *body))
    assert fault_of(play.send("in").send("in")) == "conflictingRequest"


def test_exchanges_tell_open_requests_apart() -> None:
    body = (
        Receive(name="r1", channel="in", exchange="one"),
        Receive(name="r2", channel="in", exchange="two"),
        Reply(name="a1", channel="in", exchange="two"),
        Reply(name="a2", channel="in", exchange="one"),
    )
    play = started(sequence("s", *body))
    play.send("in", id="first").send("in", id="second")
    assert [reply.message for reply in replies(play)] == ["second", "first"]


def test_each_run_of_an_event_handler_has_its_own_request() -> None:
    answer = sequence("a", JobActivity(name="work", command="x"), Reply(name="re", channel="ev", value="${{ m }}"))
    scope = Scope(
        name="sc",
        body=JobActivity(name="main", command="x"),
        messages=(OnMessage(channel="ev", variable="m", body=answer),),
    )
    play = started(scope)
    play.send("ev", 1, id="first").send("ev", 2, id="second")
    play.done("work[1]", "work[0]")
    assert [(reply.message, reply.value) for reply in replies(play)] == [("second", 2), ("first", 1)]


def pick() -> Pick:
    messages = (
        OnMessage(channel="yes", variable="m", body=JobActivity(name="on-yes", command="${{ m }}")),
        OnMessage(channel="no", body=JobActivity(name="on-no", command="x")),
    )
    return Pick(
        name="pick", messages=messages, alarms=(OnAlarm(duration=100, body=JobActivity(name="late", command="x")),)
    )


def test_pick_takes_what_comes_first_and_forgets_the_rest() -> None:
    play = started(pick())
    play.send("yes", "go")
    assert (play.jobs, play.command("on-yes"), play.timers) == (["on-yes"], "go", [])
    assert play.skipped == ["on-no", "late"]
    play.send("no")
    assert play.jobs == ["on-yes"]


def test_pick_takes_an_alarm_when_no_message_comes() -> None:
    play = started(pick())
    play.ring()
    assert (play.jobs, play.now) == (["late"], 1_100)


def test_pick_takes_a_message_that_had_come_already() -> None:
    play = started(sequence("s", JobActivity(name="first", command="x"), pick()))
    play.send("no")
    play.done("first")
    assert play.jobs == ["on-no"]


def test_a_loop_may_receive_again_and_again() -> None:
    turn = sequence("t", Receive(name="r", channel="in", variable="x"), Reply(name="a", channel="in"))
    play = started(Scope(name="sc", variables={"x": 0}, body=While(name="w", condition=Expr("x < 3"), body=turn)))
    play.send("in", 1).send("in", 2).send("in", 3)
    assert play.status == "completed"


def test_invoke_with_a_variable_waits_for_the_answer() -> None:
    play = started(sequence("s", Invoke(name="i", partner="p", operation="o", value=1, variable="x"), look("${{ x }}")))
    order = play.out[play.serial("i")]
    assert isinstance(order, CallPartner) and order.wants_answer
    play.done("i", outputs="answer")
    assert play.command("look") == "answer"


def test_a_fault_of_the_partner_is_the_invokes() -> None:
    body = Scope(
        name="sc",
        body=Invoke(name="i", partner="p", operation="o", variable="x"),
        catches=(Catch(fault="no", body=look("x")),),
    )
    play = started(body)
    play.finish(play.serial("i"), failed("no"))
    assert play.jobs == ["look"]


def test_invoke_without_a_variable_is_posted_and_the_flow_goes_on() -> None:
    play = started(Invoke(name="i", partner="p", operation="o", value=1))
    assert play.status == "completed"
    [order] = play.case.posted.values()
    assert isinstance(order, CallPartner) and not order.wants_answer


def test_undelivered_messages_are_forgotten_with_the_case() -> None:
    play = started(
        Sequence(
            name="s", body=(JobActivity(name="a", command="x"), Receive(name="r", channel="news", when=Expr("false")))
        )
    )
    play.send("news")
    assert play.case.mailbox
    play.done("a")
    assert not play.case.mailbox


def test_a_message_for_a_channel_that_the_flow_has_nowhere_is_refused_with_those_it_has() -> None:
    pick = Pick(name="p", messages=(OnMessage(channel="stop", body=Empty(name="e1")),))
    scope = Scope(name="sc", body=pick, messages=(OnMessage(channel="news", body=Empty(name="e2")),))
    play = started(Sequence(name="s", body=(scope, Receive(name="r", channel="orders"))))
    with pytest.raises(RequestError, match="no channel oders; it has news, orders, stop; did you mean `orders`"):
        play.send("oders")
    for channel in ("orders", "news"):
        play.send(channel)
    assert "orders" in play.case.mailbox
