"""Calls of partners in XML: messages out of variables, and answers into them."""

import pytest

from mendflow.core.engine import decide, item_order
from mendflow.core.engine.messages import CallPartner, ForceComplete, ItemDone, WriteData
from mendflow.core.model.errors import RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Catch, Empty, Invoke, Scope, Sequence
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value
from mendflow.core.model.xml import PartCopy, XmlMessage, XmlSource, XmlTarget, XmlType
from mendflow.core.soap.references import address_of
from tests.core.engine.world import Play, failed
from tests.core.engine.xml.papers import ASKED, ORDERED, assign, copy, count, fault_of, left, literal, order, ran

ORDER_MESSAGE: Value = {"order": order()}


def message(operation: str, variable: str = "", link: str = "partner", **parts: str) -> XmlMessage:
    return XmlMessage(
        partner_link=link,
        operation=operation,
        variable=variable,
        parts=tuple(PartCopy(part=part, variable=name) for part, name in parts.items()),
    )


def invoke(sends: XmlMessage, gets: XmlMessage | None = None) -> Invoke:
    return Invoke(name="i", partner=sends.partner_link, operation=sends.operation, sends=sends, gets=gets)


def asked(play: Play) -> CallPartner:
    found = item_order(play.case, play.serial("i"))
    assert isinstance(found, CallPartner)
    return found


def answer(play: Play, value: Value) -> None:
    play.finish(play.serial("i"), Outcome(outputs=value))


def test_a_call_says_what_is_asked_of_whom_and_where() -> None:
    play = ran(invoke(message("count", "ordered"), message("count", "counted")), ordered=ORDER_MESSAGE)
    order = asked(play)
    assert (order.partner, order.operation, order.port_type) == ("partner", "count", ASKED)
    assert (order.value, order.wants_answer) == (ORDER_MESSAGE, True)
    assert address_of(order.reference) == "http://127.0.0.1:1/asked"
    answer(play, {"count": count(3)})
    assert (play.status, left(play, "counted")) == ("completed", {"count": count(3)})


def test_people_are_told_how_a_call_ended() -> None:
    for outcome in (Outcome(outputs={"count": count(3)}), failed("partnerUnreachable")):
        play = ran(invoke(message("count", "ordered")), ordered=ORDER_MESSAGE)
        play.finish(play.serial("i"), outcome)
        [told] = [each for each in play.given if isinstance(each, ItemDone)]
        assert (told.item, told.kind, told.outputs, told.fault) == ("i", "invoke", outcome.outputs, outcome.fault)


def test_a_call_without_an_answer_waits_until_it_was_taken() -> None:
    play = ran(invoke(message("tell", "ordered")), ordered=ORDER_MESSAGE)
    assert asked(play).wants_answer
    assert play.status == "running"
    answer(play, None)
    assert play.status == "completed"


def test_a_message_of_one_element_can_be_a_variable_of_that_element() -> None:
    play = ran(invoke(message("count", "order"), message("count", "count")), order=order())
    assert asked(play).value == ORDER_MESSAGE
    answer(play, {"count": count(3)})
    assert left(play, "count") == count(3)


def test_parts_come_from_variables_and_go_to_variables_of_what_type_they_have() -> None:
    sends = message("measure", count="number", size="few")
    gets = message("measure", count="amount", size="text")
    play = ran(invoke(sends, gets), number=4, few=2)
    assert asked(play).value == {"count": {"$xml": '<count xmlns="urn:o">4</count>'}, "size": 2}
    answer(play, {"count": count(5), "size": "6"})
    assert (left(play, "amount"), left(play, "text")) == (5, "6")


def test_a_message_without_parts_needs_no_variable_and_no_value() -> None:
    for how in (message("nudge"), message("nudge", "nothing")):
        assert asked(ran(invoke(how))).value == {}


@pytest.mark.parametrize(
    ("how", "held"),
    [
        (message("count", "ordered"), {}),
        (message("count", "order"), {}),
        (message("measure", "mixed"), {"mixed": {"size": 1}}),
        (message("measure", count="number", size="few"), {"number": 1}),
        (message("measure", size="few"), {"few": 1}),
    ],
)
def test_what_has_no_value_cannot_be_sent(how: XmlMessage, held: dict[str, Value]) -> None:
    assert fault_of(ran(invoke(how), **held)) == "uninitializedVariable"


def test_a_partner_of_whom_nobody_has_said_where_it_is_cannot_be_called() -> None:
    unknown = message("begin", "ordered", link="unknown")
    assert fault_of(ran(invoke(unknown), ordered=ORDER_MESSAGE)) == "uninitializedPartnerRole"
    later = message("tell", "ordered", link="later")
    assert address_of(asked(ran(invoke(later), ordered=ORDER_MESSAGE)).reference) == "http://127.0.0.1:1/asked"


def test_a_partner_is_called_where_the_link_says_by_then() -> None:
    reference = literal(
        '<s:service-ref xmlns:s="http://docs.oasis-open.org/wsbpel/2.0/serviceref">http://x/</s:service-ref>'
    )
    move = assign(copy(reference, XmlTarget(partner_link="partner")))
    play = ran(Sequence(name="s", body=(move, invoke(message("tell", "ordered")))), ordered=ORDER_MESSAGE)
    assert address_of(asked(play).reference) == "http://x/"


@pytest.mark.parametrize("said", ["<x/>", "file:///etc/passwd", "ftp://127.0.0.1/x", "urn:x"])
def test_a_reference_that_says_no_address_of_a_known_kind_is_not_supported(said: str) -> None:
    reference = literal(
        f'<s:service-ref xmlns:s="http://docs.oasis-open.org/wsbpel/2.0/serviceref">{said}</s:service-ref>'
    )
    move = assign(copy(reference, XmlTarget(partner_link="partner")))
    play = ran(Sequence(name="s", body=(move, invoke(message("tell", "ordered")))), ordered=ORDER_MESSAGE)
    assert fault_of(play) == "unsupportedReference"


def test_a_fault_of_the_partner_goes_to_who_catches_its_data() -> None:
    take = assign(copy("$f.order/@id", XmlTarget(variable="number")))
    caught = Catch(body=take, fault="{urn:o}spoiled", variable="f", holds=XmlType(message=ORDERED))
    play = ran(Scope(name="s", body=invoke(message("count", "ordered")), catches=(caught,)), ordered=ORDER_MESSAGE)
    data = {"type": {"message": ORDERED}, "value": {"order": order(id=9)}}
    fault = Fault(name="{urn:o}spoiled", category=Category.FLOW, message="", data=data)
    play.finish(play.serial("i"), Outcome(fault=fault))
    assert left(play, "number") == 9


@pytest.mark.parametrize("value", ["x", [1], {"count": 5}, {"count": {"$xml": "<a>"}}, {"what": 1}])
def test_an_answer_that_no_variable_could_hold_is_a_fault(value: Value) -> None:
    calls = invoke(message("count", "ordered"), message("count", "counted"))
    play = ran(calls, ordered=ORDER_MESSAGE)
    with pytest.raises(RequestError, match="the answer cannot be taken"):
        decide(play.case, ForceComplete(item=ItemId("i"), outputs=value), play.now)
    answer(play, value)
    assert fault_of(play) == "invalidVariables"


def test_a_call_that_is_held_can_be_changed_to_another_message_of_its_operation() -> None:
    play = ran(invoke(message("count", "ordered")), ordered=ORDER_MESSAGE)
    play.do(WriteData(item=ItemId("i"), values={"order": order(id=9)}))
    assert asked(play).value == {"order": order(id=9)}
    for values in ({"order": 5}, {"what": 1}):
        with pytest.raises(RequestError, match="what it sends cannot be taken"):
            decide(play.case, WriteData(item=ItemId("i"), values=values), play.now)


def test_an_answer_is_there_for_the_next_activity() -> None:
    calls = invoke(message("count", "ordered"), message("count", "counted"))
    after = assign(copy(XmlSource(variable="counted", part="count"), XmlTarget(variable="number")))
    play = ran(Sequence(name="s", body=(calls, after, Empty(name="e"))), ordered=ORDER_MESSAGE)
    play.crash(with_snapshot=True)
    answer(play, {"count": count(" 8 ")})
    assert left(play, "number") == 8
