"""What is read from a process and written again is the same flow."""

import re
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.formats.bpel import load_bpel
from tests.examples import examples
from tests.formats.bpel.documents import HEAD, RECEIVE, REPLY, WSDL, flow, process, put, sequence
from tests.formats.bpel.test_conformance import processes
from tests.formats.bpel.writing.rounds import check_round

INVOKE = '<invoke name="ask" partnerLink="shop" operation="buy" inputVariable="order" outputVariable="receipt"'
COPY = "<copy><from>{}</from><to variable='number'/></copy>"

LEAVES = (
    "<empty/>",
    '<empty name="again"/>',
    "<exit/>",
    '<throw faultName="o:mine" faultVariable="paper"/>',
    '<throw faultName="bpel:selectionFailure"/>',
    '<throw faultName="plain"/>',
    "<wait><for>'PT1S'</for></wait>",
    "<wait><until>'2030-01-01'</until></wait>",
    '<validate variables="number paper"/>',
    '<assign validate="yes">' + COPY.format("$number + 1 &lt; 3") + "</assign>",
    "<assign>" + COPY.format("<literal>\n  5 &lt; 6</literal>") + "</assign>",
    "<assign>" + COPY.format("<literal><o:number>5</o:number></literal>") + "</assign>",
    "<assign>" + COPY.format("") + "</assign>",
    '<assign><copy keepSrcElementName="yes" ignoreMissingFromData="yes"><from variable="order" part="order">'
    "<query>o:number</query></from><to>$paper/o:number</to></copy></assign>",
    '<assign><copy><from variable="order" property="o:number"/><to variable="order" property="o:number"/></copy>'
    "</assign>",
    '<assign><copy><from partnerLink="shop" endpointReference="partnerRole"/><to partnerLink="shop"/></copy></assign>',
    '<assign><copy><from expressionLanguage="urn:mendflow:cel">1 + 1</from><to variable="number"/></copy></assign>',
    f"{INVOKE}/>",
    f'{INVOKE}><correlations><correlation set="numbers" initiate="join" pattern="request"/></correlations></invoke>',
    f'{INVOKE}><catch faultName="o:soldOut" faultVariable="why" faultMessageType="o:troubleMessage"><empty/></catch>'
    "<catchAll><rethrow/></catchAll><compensationHandler><empty/></compensationHandler></invoke>",
    '<invoke partnerLink="shop" operation="count"><toParts><toPart part="count" fromVariable="number"/>'
    '<toPart part="of" fromVariable="number"/></toParts>'
    '<fromParts><fromPart part="count" toVariable="number"/></fromParts></invoke>',
    '<receive partnerLink="buyer" operation="tell" variable="order" messageExchange="m">'
    '<correlations><correlation set="numbers"/></correlations></receive>',
    '<reply partnerLink="buyer" operation="buy" variable="receipt" messageExchange="m"/>',
    '<extensionActivity><x:other xmlns:x="urn:x" name="more"/></extensionActivity>',
)
"""A step of each kind and form."""


def within(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Activities with others in them."""
    shapes = (
        "<sequence name='steps'>{0}{1}</sequence>",
        "<flow>{0}{1}</flow>",
        "<flow><links><link name='l'/></links><sequence><sources><source linkName='l'><transitionCondition>$number"
        " = 1</transitionCondition></source></sources>{0}</sequence><sequence suppressJoinFailure='yes'><targets>"
        "<joinCondition>$l</joinCondition><target linkName='l'/></targets>{1}</sequence></flow>",
        "<if><condition>$paper/o:number = 1</condition>{0}<elseif><condition>true()</condition>{1}</elseif>"
        "<else>{0}</else></if>",
        "<while><condition>$number &lt; 3</condition>{0}</while>",
        "<repeatUntil>{0}<condition>$number &gt; 3</condition></repeatUntil>",
        "<forEach counterName='i' parallel='yes'><startCounterValue>1</startCounterValue><finalCounterValue>$number"
        "</finalCounterValue><completionCondition><branches successfulBranchesOnly='yes'>1</branches>"
        "</completionCondition><scope>{0}</scope></forEach>",
        "<pick><onMessage partnerLink='buyer' operation='tell' variable='order'>{0}</onMessage><onAlarm><for>'PT1S'"
        "</for>{1}</onAlarm></pick>",
        "<scope name='inner' isolated='yes' exitOnStandardFault='yes'><partnerLinks><partnerLink name='buyer' "
        "partnerLinkType='o:Buying' myRole='shop'/></partnerLinks><messageExchanges><messageExchange name='m'/>"
        "</messageExchanges><variables><variable name='paper' element='o:order'><from variable='paper'/></variable>"
        "</variables><faultHandlers><catch faultName='o:x' faultVariable='p' faultElement='o:order'><sequence>{0}"
        "</sequence></catch>"
        "<catchAll><compensate/></catchAll></faultHandlers><compensationHandler><sequence>{1}</sequence></compensationHandler>"
        "<terminationHandler><empty/></terminationHandler><eventHandlers><onEvent partnerLink='buyer' operation='tell' "
        "variable='told' messageType='o:orderMessage'><scope><variables><variable name='own' type='xsd:int'/>"
        "</variables>{0}</scope></onEvent><onAlarm><repeatEvery>'PT1S'</repeatEvery><scope>{1}</scope></onAlarm>"
        "</eventHandlers>{0}</scope>",
        "<scope><faultHandlers><catchAll><compensateScope target='deep'/></catchAll></faultHandlers>"
        "<scope name='deep'>{0}</scope></scope>",
    )
    return st.builds(lambda shape, one, two: shape.format(one, two), st.sampled_from(shapes), inner, inner)


def numbered(steps: str, name: str) -> str:
    number = count()
    return re.sub(name, lambda found: f"{found.group()[:-1]}{next(number)}{found.group()[-1]}", steps)


def whole(steps: str, attributes: str = "") -> str:
    """A process with these steps, in which each scope has a name of its own and only one is isolated."""
    for name in ("name='inner'", "name='deep'", "target='deep'", 'name="ask"'):
        steps = numbered(steps, name)
    first, isolated, rest = steps.partition(" isolated='yes'")
    steps = first + isolated + rest.replace(isolated or " ", "" if isolated else " ")
    exchange = "<messageExchanges><messageExchange name='m'/></messageExchanges>"
    return process(f"{HEAD}{exchange}<sequence>{RECEIVE}{steps}{REPLY}</sequence>", attributes)


STEPS = st.recursive(st.sampled_from(LEAVES), within, max_leaves=4)


@pytest.mark.full
def test_every_conformance_process_is_the_same_after_a_round(tmp_path: Path) -> None:  # FM-2
    for number, path in enumerate(processes()):
        check_round(load_bpel(path), tmp_path / str(number))


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_kind_of_step_is_the_same_after_a_round(leaf: str, tmp_path: Path) -> None:
    check_round(flow(tmp_path / "first", whole(leaf)), tmp_path)


@given(steps=st.lists(STEPS, min_size=1, max_size=3), attributes=st.sampled_from(["", "suppressJoinFailure='yes'"]))
@settings(max_examples=examples(60), deadline=None)
def test_random_processes_are_the_same_after_a_round(steps: list[str], attributes: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_round(flow(Path(folder, "first"), whole("".join(steps), attributes)), Path(folder))


def test_prefixes_that_mean_two_things_keep_both(tmp_path: Path) -> None:
    two = (
        "<assign>"
        + COPY.format("$paper/o:number")
        + "</assign><assign xmlns:o='urn:another'>"
        + COPY.format("$paper/o:number")
        + "</assign>"
    )
    check_round(flow(tmp_path / "first", sequence(two)), tmp_path)


def test_words_before_a_colon_do_not_become_prefixes(tmp_path: Path) -> None:
    step = "<assign>" + COPY.format("concat('p:', 'q')") + "</assign>"
    other = "<assign xmlns:p='urn:p'>" + COPY.format("$paper/p:x") + "</assign>"
    check_round(flow(tmp_path / "first", sequence(step, other)), tmp_path)


def test_schemas_in_files_of_their_own_find_each_other_again(tmp_path: Path) -> None:
    inner = (
        '<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:m">'
        '<xsd:element name="m" type="xsd:int"/></xsd:schema>'
    )
    outer = (
        '<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:m="urn:m" targetNamespace="urn:n">'
        '<xsd:import namespace="urn:m" schemaLocation="months.xsd"/><xsd:element name="n" type="xsd:int"/></xsd:schema>'
    )
    text = sequence().replace(
        "<partnerLinks>",
        '<import namespace="urn:n" location="names.xsd" importType="http://www.w3.org/2001/XMLSchema"/><partnerLinks>',
        1,
    )
    path = put(tmp_path / "first", text, months_xsd=inner, names_xsd=outer, orders_wsdl=WSDL)
    check_round(load_bpel(path), tmp_path)
