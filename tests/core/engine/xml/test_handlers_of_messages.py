"""Event handlers and picks in BPEL: when they listen, whose data they see, and what they throw. FM-2"""

from msgspec.structs import replace

from mendflow.core.engine.messages import ForceComplete
from mendflow.core.engine.xml.listeners import match_kind
from mendflow.core.model.flow import Activity, Catch, OnAlarm, OnMessage, Parallel, Pick, Scope, Throw
from mendflow.core.model.ids import ItemId
from mendflow.core.model.xml import PartCopy, ScopeDeclarations, XmlMessage, XmlType
from tests.core.engine.world import Play
from tests.core.engine.xml.conversations import (
    ID,
    QUESTION,
    XSD,
    answered,
    fault_of,
    on_message,
    receive,
    reply,
    said,
    sequence,
    step,
    talking,
)

OWN = ScopeDeclarations(types={"question": XmlType(message=QUESTION)})


def with_handlers(*messages: OnMessage, body: Activity | None = None, exchanges: tuple[str, ...] = ()) -> Play:
    start = receive("start", "tell", creates=True, talk="yes")
    scope = Scope(name="x", body=step("x"), messages=messages)
    return talking(sequence("s", start, body or step("a")), scope=scope, exchanges=exchanges)


def test_the_handlers_of_a_process_listen_when_its_first_message_was_taken() -> None:
    play = with_handlers(on_message("ask", reply("r"), declared=OWN, talk="no"))
    assert list(play.case.listeners) == ["link.tell"]
    play.send("link.tell", said(4))
    assert match_kind(play.case, "link.ask", said(4)) == "correlated"
    assert match_kind(play.case, "link.ask", said(5)) == "no"
    play.send("link.ask", said(4), id="m")
    assert answered(play) == ["m"]
    assert play.done("a").status == "completed"


def test_a_first_message_that_a_person_gave_counts_as_one() -> None:
    play = with_handlers(on_message("ask", reply("r"), declared=OWN, talk="join"))
    play.do(ForceComplete(item=ItemId("start"), outputs=said(4)))
    assert match_kind(play.case, "link.ask", said(4)) == "plain", "it listens; no message has begun the set"


def test_an_alarm_of_a_process_counts_from_its_first_message() -> None:
    scope = Scope(name="x", body=step("x"), alarms=(OnAlarm(duration=1_000, body=step("late")),))
    start = receive("start", "tell", creates=True)
    play = talking(sequence("s", start, step("a")), scope=scope)
    assert play.timers == []
    play.now = 50_000
    play.send("link.tell", said(1))
    assert play.ring().now == 51_000
    assert play.jobs == ["a", "late[0]"]


def test_the_handlers_of_an_inner_scope_listen_from_its_beginning_and_hear_what_their_set_has_by_then() -> None:
    inner = Scope(
        name="inner",
        body=sequence("t", receive("start", "tell", creates=True, talk="yes"), step("a")),
        messages=(on_message("ask", reply("r"), declared=OWN, talk="no"),),
    )
    play = talking(inner)
    assert match_kind(play.case, "link.ask", said(1)) == "no"
    play.send("link.tell", said(1))
    assert match_kind(play.case, "link.ask", said(1)) == "correlated"


def test_each_run_of_a_handler_has_its_own_variable_and_answers_its_own_request() -> None:
    play = with_handlers(on_message("ask", sequence("h", step("b"), reply("r")), declared=OWN, talk="no"))
    play.send("link.tell", said(1)).send("link.ask", said(1, "one"), id="x").send("link.ask", said(1, "two"), id="y")
    assert play.jobs == ["a", "b[0]", "b[1]"]
    seen = sorted(str(env.variables["question"]) for env in play.case.envs.values() if "question" in env.variables)
    assert seen == [str(said(1, "one")), str(said(1, "two"))]
    play.done("b[1]", "b[0]")
    assert answered(play) == ["y", "x"]


def test_a_handler_may_begin_a_set_of_its_own_with_each_message() -> None:
    declared = ScopeDeclarations(types=OWN.types, correlation_sets={"own": (ID,)})
    body = sequence("h", reply("r"), receive("more", "begin", own="no"), reply("r2", "begin"))
    play = with_handlers(on_message("ask", body, declared=declared, own="yes"))
    play.send("link.tell", said(1)).send("link.ask", said(7)).send("link.ask", said(8))
    assert match_kind(play.case, "link.begin", said(7)) == match_kind(play.case, "link.begin", said(8)) == "correlated"
    assert match_kind(play.case, "link.begin", said(9)) == "no"
    play.send("link.begin", said(8), id="m8").send("link.begin", said(7), id="m7")
    assert answered(play)[2:] == ["m8", "m7"]


def test_a_named_exchange_belongs_to_the_scope_that_declares_it() -> None:
    handler = on_message("ask", step("b"), declared=OWN, exchange="outer", talk="no")
    play = with_handlers(handler, exchanges=("outer",), body=sequence("t", step("a"), reply("r", exchange="outer")))
    play.send("link.tell", said(1)).send("link.ask", said(1), id="m").done("b[0]", "a")
    assert answered(play) == ["m"], "the process answers what its handler has heard"
    declared = ScopeDeclarations(types=OWN.types, exchanges=("inner",))
    handler = on_message("ask", reply("r", exchange="inner"), declared=declared, exchange="inner", talk="no")
    play = with_handlers(handler).send("link.tell", said(1)).send("link.ask", said(1), id="m")
    assert answered(play) == ["m"]


def test_a_second_request_that_a_handler_cannot_take_is_for_the_handlers_of_its_scope() -> None:
    inner = Scope(
        name="inner",
        body=step("a"),
        messages=(on_message("ask", step("b"), declared=OWN, exchange="outer"),),
        catches=(Catch(fault="conflictingRequest", body=reply("sorry", exchange="outer")),),
    )
    play = talking(sequence("s", inner, step("c")), exchanges=("outer",))
    play.send("link.ask", said(1), id="m1").send("link.ask", said(1), id="m2")
    assert answered(play) == ["m1"]
    assert play.jobs == ["c"]


def test_a_handler_that_ends_without_an_answer_misses_a_reply() -> None:
    inner = Scope(
        name="inner",
        body=step("a"),
        messages=(on_message("ask", step("b"), declared=OWN),),
        catches=(Catch(fault="missingReply", body=step("c")),),
    )
    play = talking(inner).send("link.ask", said(1)).done("b[0]")
    assert play.jobs == ["c"]


def test_parts_of_a_message_fill_variables_of_the_handler() -> None:
    declared = ScopeDeclarations(types={"number": XmlType(type=f"{{{XSD}}}int")})
    heard = XmlMessage(partner_link="link", operation="tell", parts=(PartCopy(part="id", variable="number"),))
    handler = replace(on_message("tell", step("b"), declared=declared), xml=heard)
    play = talking(Scope(name="inner", body=step("a"), messages=(handler,))).send("link.tell", said(12))
    assert [env.variables["number"] for env in play.case.envs.values() if "number" in env.variables] == [12]


def test_a_pick_takes_the_first_message_that_is_of_its_conversation() -> None:
    pick = Pick(
        name="pick",
        messages=(
            on_message("ask", sequence("t1", reply("r"), step("b")), talk="no"),
            on_message("begin", sequence("t2", reply("r2", "begin"), step("c")), aside="join"),
        ),
        alarms=(OnAlarm(duration=10, body=step("late")),),
    )
    play = talking(sequence("s", receive("start", "tell", talk="yes"), pick)).send("link.tell", said(1))
    assert (match_kind(play.case, "link.ask", said(2)), match_kind(play.case, "link.begin", said(2))) == ("no", "plain")
    play.send("link.ask", said(1), id="m")
    assert (play.jobs, answered(play), play.timers) == (["b"], ["m"], [])


def test_a_pick_that_begins_a_case_lets_the_handlers_of_the_process_listen() -> None:
    pick = Pick(name="pick", messages=(on_message("tell", step("b"), creates=True, talk="yes"),))
    handlers = Scope(name="x", body=step("x"), messages=(on_message("ask", reply("r"), declared=OWN, talk="no"),))
    play = talking(pick, scope=handlers)
    assert list(play.case.listeners) == ["link.tell"]
    play.send("link.tell", said(3)).send("link.ask", said(3), id="m")
    assert answered(play) == ["m"]


def test_a_pick_that_follows_a_set_which_was_not_begun_violates_it() -> None:
    pick = Pick(name="pick", messages=(on_message("ask", step("b"), talk="no"),))
    assert fault_of(talking(pick)) == "correlationViolation"


def test_what_a_handler_throws_when_it_begins_to_listen_is_for_its_own_scope() -> None:
    inner = Scope(
        name="inner",
        body=step("a"),
        messages=(on_message("ask", step("b"), declared=OWN),),
        catches=(Catch(fault="conflictingReceive", body=step("c")),),
    )
    play = talking(Parallel(name="p", branches=(receive("r", "ask"), inner)))
    assert play.jobs == ["c"]


def test_a_message_of_a_handler_is_lost_with_the_scope_that_a_fault_ends() -> None:
    inner = Scope(
        name="inner",
        body=sequence("t", step("a"), Throw(name="throw", fault="{urn:t}oops")),
        messages=(on_message("ask", step("b"), declared=OWN),),
        catches=(Catch(fault=None, body=step("c")),),
    )
    play = talking(inner).send("link.ask", said(1)).done("a")
    assert play.jobs == ["c"]
    assert play.done("c").status == "completed"
