"""What may enter a case with XML: flows that name what is there, messages and data of the right shape."""

import pytest

from mendflow.core.engine import compile_flow, decide
from mendflow.core.engine.messages import Deliver, WriteData
from mendflow.core.model.errors import BadFlow, RequestError
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Catch,
    Empty,
    Flow,
    Invoke,
    Receive,
    Reply,
    Scope,
    Throw,
    Validate,
    Wait,
)
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import Value
from mendflow.core.model.xml import Correlation, ScopeDeclarations, XmlMessage, XmlSource, XmlTarget, XmlType
from tests.core.engine.xml.papers import ORDERED, assign, copy, left, literal, order, process, ran, xpath

WAIT = Wait(name="w", duration=xpath("'PT1S'"))
TEXT = XmlTarget(variable="text")


def begin(link: str = "mine", operation: str = "begin", variable: str = "ordered") -> XmlMessage:
    return XmlMessage(partner_link=link, operation=operation, variable=variable)


def problems_of(flow: Flow) -> str:
    with pytest.raises(BadFlow) as caught:
        compile_flow(flow)
    return "\n".join(each.message for each in caught.value.problems)


SPEAKING: list[Activity] = [
    assign(copy("1", TEXT)),
    Assign(name="a", validate=True),
    Validate(name="v", variables=("text",)),
    Throw(name="t", fault="x", variable="text"),
    Scope(name="s", body=Empty(name="e"), declared=ScopeDeclarations()),
    Scope(name="s", body=Empty(name="e"), catches=(Catch(body=Empty(name="f"), holds=XmlType(element="e")),)),
    Receive(name="r", channel="c", xml=begin()),
    Reply(name="r", channel="c", xml=begin()),
    Invoke(name="i", partner="p", operation="o", sends=begin()),
]


@pytest.mark.parametrize("activity", SPEAKING)
def test_a_flow_that_speaks_xml_must_know_its_wsdl_files(activity: Activity) -> None:
    assert "knows no WSDL files" in problems_of(Flow(name=FlowName("f"), body=activity))


@pytest.mark.parametrize(
    ("activity", "said"),
    [
        (assign(copy("1", XmlTarget(variable="what"))), "no variable what is declared"),
        (assign(copy(XmlSource(variable="what"), TEXT)), "no variable what is declared"),
        (assign(copy(XmlSource(partner_link="what"), TEXT)), "no partner link what is declared"),
        (assign(copy(XmlSource(literal="<a>"), TEXT)), "a literal in it cannot be read"),
        (Validate(name="v", variables=("what",)), "no variable what is declared"),
        (Throw(name="t", fault="x", variable="what"), "no variable what is declared"),
        (Receive(name="r", channel="c", xml=begin("partner")), "no partner link partner with an operation begin"),
        (Receive(name="r", channel="c", xml=begin(variable="what")), "no variable what is declared"),
        (Invoke(name="i", partner="p", operation="o", sends=begin()), "no partner link mine with an operation begin"),
        (
            Scope(
                name="s", body=Empty(name="e"), declared=ScopeDeclarations(first=(copy(XmlSource(variable="x"), TEXT),))
            ),
            "no variable x is declared",
        ),
        (
            Receive(
                name="r",
                channel="c",
                xml=XmlMessage(partner_link="mine", operation="begin", correlations=(Correlation(set="s"),)),
            ),
            "no correlation set s is declared",
        ),
    ],
)
def test_what_is_named_must_be_declared_around_it(activity: Activity, said: str) -> None:
    assert said in problems_of(process(activity))


def test_expressions_are_judged_when_they_are_evaluated() -> None:
    compile_flow(process(assign(copy("1 +", TEXT), copy("$nobody", TEXT), copy("unheard-of()", TEXT))))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("text", "it must be a message"),
        ({"order": 5}, "the part order: it must be an element"),
        ({"order": {"$xml": "<a><b></a>"}}, "the part order: its XML cannot be read"),
        ({"order": {"$xml": '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'}}, "the part order: its XML cannot be read"),
        ({"what": 1}, "has no part what"),
    ],
)
def test_a_message_that_no_variable_could_hold_is_refused(value: Value, said: str) -> None:
    play = ran(Receive(name="r", channel="mine.begin", xml=begin()))
    with pytest.raises(RequestError, match=said):
        decide(play.case, Deliver(id="m", channel="mine.begin", value=value), play.now)


def test_variables_of_a_process_are_seen_and_written_as_those_of_the_case() -> None:
    play = ran(WAIT, order=order(), number=1)
    play.do(WriteData(values={"number": 5, "order": order(id=9), "ordered.order": order(id=3)}))
    assert (left(play, "number"), left(play, "order")) == (5, order(id=9))
    assert left(play, "ordered") == {"order": order(id=3)}
    assert not any(name.startswith(("@", "#", "%")) for name in play.case.variables)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("what", 1, "has no variable 'what'"),
        ("number", [1], "must be plain"),
        ("order", "text", "must be an element"),
        ("ordered.what", 1, "has no part what"),
        ("ordered", {"order": {"$xml": "<"}}, "cannot be read"),
        ("number.inside", 1, "cannot be put into something"),
    ],
)
def test_what_a_variable_cannot_hold_is_not_written(path: str, value: Value, said: str) -> None:
    play = ran(WAIT, number=1)
    with pytest.raises(RequestError, match=said):
        decide(play.case, WriteData(values={path: value}), play.now)


def test_variables_stay_known_when_the_process_is_over_however_it_ended() -> None:
    for body in (assign(copy("5", XmlTarget(variable="number"))), Throw(name="t", fault="x")):
        play = ran(body, order=order(), number=5)
        assert (play.case.over, left(play, "number"), left(play, "order")) == (True, 5, order())


def test_a_literal_of_an_element_is_fine() -> None:
    assert ran([copy(literal("<o:order/>"), XmlTarget(variable="order"))]).status == "completed"
    assert ORDERED.startswith("{urn:o}")


@pytest.mark.parametrize("activity", [Receive(name="r", channel="c"), Reply(name="r", channel="c")])
def test_all_messages_of_a_flow_with_xml_are_said_in_xml(activity: Activity) -> None:
    assert "are said in XML" in problems_of(process(activity))


@pytest.mark.parametrize(
    ("name", "value"),
    [("what", 1), ("number", []), ("order", "x"), ("@partner", 1), ("@partner", {"mine": 1, "partner": None})],
)
def test_what_a_process_knows_from_elsewhere_must_have_a_place_in_it(name: str, value: Value) -> None:
    assert f"the value of {name} cannot be taken" in problems_of(process(WAIT, **{name: value}))
