"""Envelopes: what is taken, what is refused, and that elements keep their meaning when they are taken out."""

import pytest

from mendflow.core.model.values import Value
from mendflow.core.soap import ADDRESSING, ENVELOPE
from mendflow.core.soap.envelope import (
    BadEnvelope,
    element_of,
    header,
    read_envelope,
    write_envelope,
    write_fault,
    xml_text,
)
from mendflow.core.soap.references import (
    address_of,
    headers_of,
    own_link,
    own_reference,
    service_reference,
    with_public_references,
)


def around(body: str, head: str = "") -> bytes:
    return f'<e:Envelope xmlns:e="{ENVELOPE}"><e:Header>{head}</e:Header><e:Body>{body}</e:Body></e:Envelope>'.encode()


def test_an_element_is_taken_out_with_the_namespaces_that_its_content_names() -> None:
    data = (
        f'<e:Envelope xmlns:e="{ENVELOPE}" xmlns:q="urn:q"><e:Body><a xmlns="urn:a" kind="q:odd">q:even</a></e:Body>'
        "</e:Envelope>"
    )
    [body] = read_envelope(data.encode()).body
    alone = element_of(body)
    assert 'xmlns:q="urn:q"' in alone
    assert ENVELOPE not in alone


def test_comments_in_a_body_are_no_elements() -> None:
    envelope = read_envelope(around("<!-- a --><d/>"))
    assert [each.tag for each in envelope.body] == ["d"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"<a/>", "Client"),
        (b"nothing", "Client"),
        (b'<Envelope xmlns="http://www.w3.org/2003/05/soap-envelope"><Body/></Envelope>', "VersionMismatch"),
        (f'<Envelope xmlns="{ENVELOPE}"/>'.encode(), "Client"),
        (around("<a/>", f'<s xmlns="urn:s" e:mustUnderstand="1" xmlns:e="{ENVELOPE}"/>'), "MustUnderstand"),
        (around("<a><?b c?></a>"), "Client"),
        (around("<a/></e:Body><e:Body>"), "Client"),
        (around("<a/>" * 100_001), "Client"),
        (around("<a><!--b--></a>" * 60_000), "Client"),
        (around("<a>" + "b" * (1 << 20) + "</a>"), "Client"),
        (around("<a>" + "<b/>" * 20_000 + "</a>"), "Client"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + around("<a>&b;</a>"), "Client"),
    ],
)
def test_what_is_no_envelope_of_ours_is_refused_with_the_code_that_soap_has_for_it(data: bytes, code: str) -> None:
    with pytest.raises(BadEnvelope) as refused:
        read_envelope(data)
    assert refused.value.faultcode == code


def test_a_header_for_somebody_else_need_not_be_understood_here() -> None:
    other = f'<s xmlns="urn:s" e:mustUnderstand="1" e:actor="urn:other" xmlns:e="{ENVELOPE}"/>'
    assert read_envelope(around("<a/>", other)).body


def test_addressing_must_be_understood_and_is() -> None:
    id = f'<w:MessageID xmlns:w="{ADDRESSING}" e:mustUnderstand="1" xmlns:e="{ENVELOPE}"> urn:7 </w:MessageID>'
    assert read_envelope(around("<a/>", id)).message_id == "urn:7"


def test_what_is_written_can_be_read() -> None:
    envelope = read_envelope(write_envelope(['<a xmlns="urn:a">1</a>'], [header(ADDRESSING, "MessageID", "<7>")]))
    assert envelope.message_id == "<7>"
    assert element_of(envelope.body[0]) == '<a xmlns="urn:a">1</a>'


def test_a_fault_is_told_with_its_code_its_words_and_its_detail() -> None:
    fault = read_envelope(write_fault("a < b", ['<d xmlns="urn:d"/>'], code="Client")).fault()
    assert fault is not None
    assert (fault.code, fault.string) == (f"{{{ENVELOPE}}}Client", "a < b")
    assert [each.tag for each in fault.detail] == ["{urn:d}d"]


def test_what_xml_cannot_say_does_not_break_an_envelope() -> None:
    fault = read_envelope(write_fault("bell \x07, half \ud800")).fault()
    assert fault is not None
    assert fault.string == "bell ?, half ?"
    assert xml_text('"<&>') == "&quot;&lt;&amp;&gt;"


@pytest.mark.parametrize(
    "reference",
    [
        service_reference("http://a/b?c=1&d"),
        "http://a/b?c=1&d",
        {
            "$xml": '<e:EndpointReference xmlns:e="http://schemas.xmlsoap.org/ws/2004/08/addressing">'
            "<e:Address> http://a/b?c=1&amp;d </e:Address></e:EndpointReference>"
        },
        {
            "$xml": '<w:service xmlns:w="http://schemas.xmlsoap.org/wsdl/"><w:port>'
            '<s:address xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" location="http://a/b?c=1&amp;d"/>'
            "</w:port></w:service>"
        },
        {"$xml": "<service-ref>http://a/b?c=1&amp;d</service-ref>"},
    ],
)
def test_an_address_is_found_in_whatever_way_a_reference_says_it(reference: object) -> None:
    assert address_of(reference) == "http://a/b?c=1&d"


@pytest.mark.parametrize("reference", [None, 5, {"$xml": "<a>no address here</a>"}, {"$xml": "<a"}])
def test_what_gives_no_address_gives_none(reference: object) -> None:
    assert address_of(reference) == ""


def test_what_a_reference_wants_to_be_sent_along_becomes_headers() -> None:
    reference: Value = {
        "$xml": f'<a:EndpointReference xmlns:a="{ADDRESSING}"><a:Address>http://b/</a:Address><a:ReferenceParameters>'
        '<ticket xmlns="urn:t">7</ticket></a:ReferenceParameters></a:EndpointReference>'
    }
    [along] = headers_of(reference)
    [sent] = read_envelope(write_envelope([], [along])).headers
    assert (sent.tag, sent.text) == ("{urn:t}ticket", "7")
    assert sent.get(f"{{{ADDRESSING}}}IsReferenceParameter") == "true"
    assert headers_of(service_reference("http://b/")) == []


def test_a_flows_own_reference_is_an_address_only_where_it_leaves() -> None:
    reference = own_reference("order", "client")
    assert own_link(address_of(reference)) == ("order", "client")
    left = with_public_references(write_envelope([str(reference["$xml"])]), "https://grid.example:8443/")
    assert b"<wsa:Address>https://grid.example:8443/soap/flows/order/client</wsa:Address>" in left
