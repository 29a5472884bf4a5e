"""Whatever happens to a process and its WSDL, they are read or refused with a sentence; nothing breaks."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import BadFlow
from mendflow.formats.bpel import load_bpel
from tests.examples import examples
from tests.formats.bpel.documents import WSDL, put, sequence

STEPS = """
<flow name="f"><links><link name="a"/></links>
  <empty name="x"><sources><source linkName="a"><transitionCondition>true()</transitionCondition></source></sources>
  </empty>
  <empty name="x"><targets><joinCondition>$a</joinCondition><target linkName="a"/></targets></empty></flow>
<scope name="s" isolated="yes"><partnerLinks><partnerLink name="shop" partnerLinkType="o:Buying" partnerRole="shop"/>
  </partnerLinks><variables><variable name="n" type="xsd:int"><from>1</from></variable></variables>
  <faultHandlers><catch faultName="o:soldOut" faultVariable="t" faultMessageType="o:troubleMessage"><rethrow/></catch>
  <catchAll><compensateScope target="inner"/></catchAll></faultHandlers>
  <compensationHandler><compensate/></compensationHandler><terminationHandler><empty/></terminationHandler>
  <eventHandlers><onEvent partnerLink="buyer" operation="tell" variable="e" messageType="o:orderMessage"><correlations>
  <correlation set="numbers"/></correlations><scope><empty/></scope></onEvent>
  <onAlarm><for>'PT1S'</for><repeatEvery>'PT1S'</repeatEvery><scope><empty/></scope></onAlarm></eventHandlers>
  <scope name="inner"><invoke partnerLink="shop" operation="buy" inputVariable="order" outputVariable="receipt">
  <catchAll><empty/></catchAll></invoke></scope></scope>
<assign validate="yes"><copy><from variable="order" part="order"><query>o:number</query></from><to>$number</to></copy>
  <copy><from><literal><o:order/></literal></from><to variable="paper"/></copy></assign>
<forEach counterName="c" parallel="no"><startCounterValue>1</startCounterValue><finalCounterValue>2</finalCounterValue>
  <completionCondition><branches>1</branches></completionCondition><scope><empty/></scope></forEach>
<pick><onMessage partnerLink="buyer" operation="tell" variable="order"><empty/></onMessage>
  <onAlarm><until>'2030-01-01'</until><exit/></onAlarm></pick>
<if><condition>true()</condition><empty/><elseif><condition>1</condition><empty/></elseif><else><empty/></else></if>
<throw faultName="o:x" faultVariable="order"/><validate variables="order"/><wait><for>'PT1S'</for></wait>
"""
WORDS = (
    "",
    "yes",
    "o:Shop",
    "no:prefix",
    "##opaque",
    "a b",
    "x" * 2000,
    "{",
    ":",
    "tell",
    "$order",
    "é~2",
    "..",
    "urn:x",
)


def damaged(text: str, draw: Callable[[st.SearchStrategy[int]], int]) -> str:
    """The document with something taken out, doubled, moved, renamed or said otherwise."""
    root = etree.fromstring(text.encode())
    for _ in range(draw(st.integers(1, 3))):
        inside = list(root.iter("*"))
        chosen = inside[draw(st.integers(0, len(inside) - 1))]
        other = inside[draw(st.integers(0, len(inside) - 1))]
        _damage(draw(st.integers(0, 5)), chosen, other, draw(st.integers(0, 99)))
    return etree.tostring(root, encoding="unicode")


def _damage(how: int, chosen: etree._Element, other: etree._Element, number: int) -> None:
    parent, word = chosen.getparent(), WORDS[number % len(WORDS)]
    names = sorted(map(str, chosen.keys()))
    if how == 0 and parent is not None:
        parent.remove(chosen)
    elif how == 1 and names:
        del chosen.attrib[names[number % len(names)]]
    elif how == 2 and names:
        chosen.set(names[number % len(names)], word)
    elif how == 3:
        chosen.tag = other.tag
    elif how == 4:
        chosen.text = word
    elif how == 5 and chosen not in other.iterancestors() and chosen is not other and parent is not None:
        other.append(chosen)


def test_the_process_is_whole_before_it_is_damaged(tmp_path: Path) -> None:
    compile_flow(load_bpel(put(tmp_path, sequence(STEPS))))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), which=st.sampled_from(["process", "wsdl"]))
def test_a_damaged_process_is_read_or_refused(tmp_path: Path, data: st.DataObject, which: str) -> None:
    process, wsdl = sequence(STEPS), WSDL
    if which == "process":
        process = damaged(process, data.draw)
    else:
        wsdl = damaged(wsdl, data.draw)
    try:
        compile_flow(load_bpel(put(tmp_path, process, orders_wsdl=wsdl)))
    except BadFlow as error:
        assert error.problems and all(problem.message for problem in error.problems)
    else:
        return


@pytest.mark.parametrize("depth", [30, 90])
def test_deep_nesting_is_read_and_what_is_deeper_is_refused(tmp_path: Path, depth: int) -> None:
    deep = "<scope>" * depth + "<empty/>" + "</scope>" * depth
    compile_flow(load_bpel(put(tmp_path, sequence(deep))))
    with pytest.raises(BadFlow, match="deep in each other"):
        load_bpel(put(tmp_path, sequence("<scope>" * 200 + "<empty/>" + "</scope>" * 200)))
