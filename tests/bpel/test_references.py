"""References: where partners are, as values that processes copy about. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.conftest import Playing
from tests.bpel.documents import (
    assign,
    buy,
    copy,
    note_value,
    process,
    put,
    traced,
)

Spelled = Callable[[str], str]


def referring(content: str) -> str:
    """A copy of such a reference to the shop, and a call of it."""
    reference = f'<s:service-ref xmlns:s="http://docs.oasis-open.org/wsbpel/2.0/serviceref"{content}</s:service-ref>'
    link = assign(copy(f"<from><literal>{reference}</literal></from>", '<to partnerLink="shop"/>'))
    return process(traced(link, buy(1), note_value("$goods.out")))


WSA = "http://www.w3.org/2005/08/addressing"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f'><a:EndpointReference xmlns:a="{WSA}"><a:Address>http://h/x</a:Address></a:EndpointReference>', "1"),
        (
            f' reference-scheme="{WSA}"><a:EndpointReference xmlns:a="{WSA}"><a:Address>http://h/x</a:Address>'
            "</a:EndpointReference>",
            "1",
        ),
        (">http://h/x", "1"),
        ('><x:epr xmlns:x="urn:x">http://h/x</x:epr>', "!unsupportedReference"),
        (' reference-scheme="urn:x"><x:epr xmlns:x="urn:x">http://h/x</x:epr>', "!unsupportedReference"),
        (
            f' reference-scheme="urn:x"><a:EndpointReference xmlns:a="{WSA}"><a:Address>http://h/x</a:Address>'
            "</a:EndpointReference>",
            "!unsupportedReference",
        ),
        (">", "!unsupportedReference"),
    ],
)
def test_a_reference_that_nobody_can_read_is_a_fault(spelled: Spelled, content: str, says: str) -> None:
    assert spelled(referring(content)) == says


def test_only_references_go_to_partner_links(spelled: Spelled) -> None:
    link = assign(copy("<from><literal><d:order/></literal></from>", '<to partnerLink="shop"/>'))
    assert spelled(process(traced(link))) == "!mismatchedAssignmentFailure"


def test_references_are_copied_from_link_to_link(play: Playing) -> None:
    other = '<partnerLink name="other" partnerLinkType="s:ShopLink" partnerRole="shop" initializePartnerRole="no"/>'
    link = assign(copy('<from partnerLink="shop" endpointReference="partnerRole"/>', '<to partnerLink="other"/>'))
    call = '<invoke partnerLink="other" operation="buy" inputVariable="wish" outputVariable="goods"/>'
    text = process(traced(link, put("3", "wish.in"), call, note_value("$goods.out")), links=other)
    assert play(text).spell() == "3"
    own = assign(copy('<from partnerLink="desk" endpointReference="myRole"/>', '<to partnerLink="other"/>'))
    assert play(process(traced(own), links=other)).spell() == ""
