"""Messages in envelopes, in document and in rpc style, and faults by their names."""

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value
from mendflow.core.model.xml import MessagePart, Operation, ServicePort, SoapBinding, XmlDefinitions
from mendflow.core.soap import BPEL, XSI
from mendflow.core.soap.envelope import BadEnvelope, SoapFault, read_envelope, write_envelope, write_fault
from mendflow.core.soap.messages import (
    answer_body,
    bind_operation,
    fault_detail,
    fault_of,
    fault_words,
    read_answer,
    read_request,
    request_body,
)

XSD = "{http://www.w3.org/2001/XMLSchema}"
WORLD = XmlDefinitions(
    namespace="urn:t",
    messages={
        "{urn:t}in": (MessagePart(name="body", element="{urn:t}order"),),
        "{urn:t}out": (MessagePart(name="body", element="{urn:t}receipt"),),
        "{urn:t}bad": (MessagePart(name="why", element="{urn:t}reason"),),
        "{urn:t}nothing": (),
        "{urn:t}sum": (MessagePart(name="a", type=XSD + "int"), MessagePart(name="b", type=XSD + "double")),
        "{urn:t}total": (MessagePart(name="result", type=XSD + "double"),),
        "{urn:t}deep": (MessagePart(name="tree", type="{urn:t}tree"),),
    },
    port_types={
        "{urn:t}Shop": {
            "buy": Operation(name="buy", input="{urn:t}in", output="{urn:t}out", faults={"sold": "{urn:t}bad"}),
            "peek": Operation(name="peek", input="{urn:t}in", output="{urn:t}out"),
            "ping": Operation(name="ping", input="{urn:t}nothing"),
        },
        "{urn:t}Sums": {
            "add": Operation(name="add", input="{urn:t}sum", output="{urn:t}total"),
            "grow": Operation(name="grow", input="{urn:t}deep"),
        },
    },
    ports=(
        ServicePort(
            service="s",
            name="p",
            port_type="{urn:t}Shop",
            address="http://shop",
            operations={
                "buy": SoapBinding(action="urn:buy"),
                "peek": SoapBinding(action="urn:peek"),
                "ping": SoapBinding(),
            },
        ),
    ),
)
SHOP = [bind_operation(WORLD, "{urn:t}Shop", name) for name in ("buy", "peek", "ping")]
BUY, PEEK, PING = SHOP
ADD = bind_operation(WORLD, "{urn:t}Sums", "add")
ORDER: dict[str, Value] = {"body": {"$xml": '<order xmlns="urn:t">5</order>'}}


def test_a_document_goes_into_the_body_as_it_is_and_comes_out_again() -> None:
    envelope = read_envelope(write_envelope(request_body(WORLD, BUY, ORDER)))
    said, message = read_request(WORLD, [BUY], envelope, "")
    assert (said, message) == (BUY, ORDER)


def test_where_a_body_fits_several_operations_the_action_decides() -> None:
    envelope = read_envelope(write_envelope(request_body(WORLD, BUY, ORDER)))
    assert read_request(WORLD, SHOP, envelope, "urn:peek")[0] is PEEK
    assert read_request(WORLD, SHOP, envelope, "urn:t/Shop/peek")[0] is PEEK
    assert read_request(WORLD, SHOP, envelope, "")[0] is BUY


def test_a_message_without_parts_is_an_empty_body() -> None:
    assert read_request(WORLD, SHOP, read_envelope(write_envelope([])), "") == (PING, {})


def test_a_body_that_fits_no_operation_is_refused() -> None:
    with pytest.raises(BadEnvelope, match=r"takes other; they take \{urn:t\}order"):
        read_request(WORLD, SHOP, read_envelope(write_envelope(["<other/>"])), "urn:buy")


def test_parts_of_simple_types_are_spoken_in_rpc_style_and_are_plain_values() -> None:
    message: dict[str, Value] = {"a": 2, "b": 0.5}
    body = request_body(WORLD, ADD, message)
    assert body == ['<rpc:add xmlns:rpc="urn:t"><a>2</a><b>0.5</b></rpc:add>']
    assert read_request(WORLD, [ADD], read_envelope(write_envelope(body)), "") == (ADD, message)
    answer = answer_body(WORLD, ADD, {"result": 2.5})
    assert read_answer(WORLD, ADD, read_envelope(write_envelope(answer))) == {"result": 2.5}


@pytest.mark.parametrize(
    "inside",
    ["<a>1</a>", "<a>1</a><a>9</a><b>2</b>", "<a>1</a><b>2</b><z>3</z>", "", f'<a xmlns:i="{XSI}" i:nil="1"/><b>2</b>'],
)
def test_an_rpc_message_has_each_of_its_parts_once_and_no_others(inside: str) -> None:
    body = f'<rpc:add xmlns:rpc="urn:t">{inside}</rpc:add>'
    with pytest.raises(BadEnvelope):
        read_request(WORLD, [ADD], read_envelope(write_envelope([body])), "")


def test_a_part_of_a_complex_type_takes_the_parts_name_whatever_it_was_called() -> None:
    grow = bind_operation(WORLD, "{urn:t}Sums", "grow")
    body = request_body(WORLD, grow, {"tree": {"$xml": '<x xmlns:t="urn:t" t:a="1"><t:leaf/></x>'}})
    _, message = read_request(WORLD, [grow], read_envelope(write_envelope(body)), "")
    assert message["tree"] == {"$xml": '<tree xmlns:t="urn:t" xmlns:rpc="urn:t" t:a="1"><t:leaf/></tree>'}


def told(data: bytes) -> SoapFault:
    found = read_envelope(data).fault()
    assert found is not None
    return found


def test_a_declared_fault_has_its_declared_name_and_its_message() -> None:
    fault = fault_of(WORLD, BUY, told(write_fault("no", ['<reason xmlns="urn:t">gone</reason>'])))
    assert fault.name == "{urn:t}sold"
    value = {"why": {"$xml": '<reason xmlns="urn:t">gone</reason>'}}
    assert fault.data == {"type": {"message": "{urn:t}bad"}, "value": value}


def test_an_undeclared_fault_is_named_after_the_element_in_its_detail() -> None:
    fault = fault_of(WORLD, PEEK, told(write_fault("no", ['<reason xmlns="urn:t">gone</reason>'])))
    assert fault.name == "{urn:t}reason"
    assert isinstance(fault.data, dict)
    assert fault.data["type"] == {"element": "{urn:t}reason"}


def test_a_standard_fault_keeps_its_bare_name_from_flow_to_flow() -> None:
    thrown = Fault(name="selectionFailure", category=Category.FLOW, message="nothing was selected")
    envelope = write_fault(fault_words(thrown), fault_detail(WORLD, PEEK, thrown))
    heard = fault_of(WORLD, PEEK, told(envelope))
    assert heard.name == "selectionFailure"
    assert heard.message == "selectionFailure: nothing was selected"
    assert f'<f:selectionFailure xmlns:f="{BPEL}"/>'.encode() in envelope


def test_a_reply_with_a_fault_has_the_element_that_the_wsdl_says() -> None:
    data: Value = {"type": {"message": "{urn:t}bad"}, "value": {"why": {"$xml": '<reason xmlns="urn:t">gone</reason>'}}}
    fault = Fault(name="{urn:t}sold", category=Category.FLOW, message="", data=data)
    assert fault_detail(WORLD, BUY, fault) == ['<reason xmlns="urn:t">gone</reason>']
    assert fault_of(WORLD, BUY, told(write_fault(fault_words(fault), fault_detail(WORLD, BUY, fault)))).data == data
