"""Processes that make no sense are refused, whatever else they say. FM-1"""

from pathlib import Path

import pytest

from tests.bpel.documents import DESK, assign, copy, note, process, scope, traced
from tests.bpel.stage import refusal

TURNS = (
    '<forEach counterName="n" parallel="no"><startCounterValue>1</startCounterValue>'
    "<finalCounterValue>1</finalCounterValue><empty/></forEach>"
)
BOTH = (
    '<eventHandlers><onEvent partnerLink="desk" operation="tell" variable="n" messageType="d:newsMessage" '
    'element="d:news"><scope><empty/></scope></onEvent></eventHandlers>'
)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (TURNS, "the body of a <forEach> must be a <scope>"),
        (assign(copy('<from partnerLink="shop"/>', '<to partnerLink="shop"/>')), "endpointReference"),
        (scope(BOTH, note("a")), "SA00090"),
        ("<wait><for>'PT1S'</for><until>'2000-01-01'</until></wait>", "only one of both makes sense"),
        ("<if><empty/></if>", "needs a <condition>"),
        ("<dance/>", "dance"),
        ('<receive partnerLink="desk" operation="tell" variable=""/>', "`variable` of <receive> is empty"),
        ('<throw faultName="a b"/>', "is no name"),
        ('<empty speed="3"/>', "speed"),
        ("<opaqueActivity/>", "opaque"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, step: str, why: str) -> None:
    assert why in refusal(tmp_path, process(traced(step)))


@pytest.mark.parametrize("attribute", ["messageType", "type", "element"])
def test_a_type_that_is_empty_is_none(tmp_path: Path, attribute: str) -> None:
    text = process(traced(), variables=f'<variable name="mine" {attribute}=""/>')
    assert f"`{attribute}` of <variable> is empty" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            'element="d:news"/>',
            'element="d:nothing"/>',
            "SA00010: nothing that the process imports defines the element",
        ),
        ('name="left" type="xsd:int"', 'name="left" type="d:Nothing"', "defines the type {urn:desk}Nothing"),
        ('messageType="d:newsMessage" part="in"', 'messageType="d:newsMessage" part="x"', "SA00020: the message"),
    ],
)
def test_what_messages_are_made_of_must_be_there(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in DESK
    assert why in refusal(tmp_path, process(traced()), desk=DESK.replace(old, new))
