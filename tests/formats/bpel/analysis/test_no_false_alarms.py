"""What comes near to breaking a rule, and breaks none, is deployed."""

from pathlib import Path

import pytest

from mendflow.formats.bpel import load_bpel
from tests.formats.bpel.analysis.broken import (
    EVENT,
    FAULTY,
    FLOW,
    INVOKE,
    JOINED,
    LINK,
    OTHER_SETS,
    TAKE,
    TOLD,
    beginning,
    copy,
    declaring,
    empty,
    expression,
    join,
    scope,
    source,
    target,
    with_events,
)
from tests.formats.bpel.documents import (
    IMPORT,
    LINKS,
    RECEIVE,
    REPLY,
    VARIABLES,
    WSDL,
    WSDL_TYPE,
    process,
    put,
    sequence,
)

LATER = FLOW.format(
    LINK.format("a") + LINK.format("b"),
    RECEIVE.replace("/>", f"><sources>{source('a')[9:-10]}{source('b')[9:-10]}</sources></receive>")
    + f"<flow><sequence>{empty(target('a'))}<empty/></sequence>{empty(target('b'))}</flow>",
)
GOOD = {
    "a process": sequence(),
    "joinFailure does not end a process, so it can be caught": sequence(
        scope(
            FAULTY.format('<catch faultName="bpel:joinFailure"><empty/></catch>') + "<empty/>",
            'exitOnStandardFault="yes"',
        )
    ),
    "an inner scope that does not exit may catch": sequence(
        scope(
            scope(
                FAULTY.format('<catch faultName="bpel:selectionFailure"><empty/></catch>') + "<empty/>",
                'exitOnStandardFault="no"',
            ),
            'exitOnStandardFault="yes"',
        )
    ),
    "a lone name is seen to when it is evaluated": sequence("<if><condition>nothing</condition><empty/></if>"),
    "what cannot be parsed is, too": sequence(expression("1 +"), "<wait><for>PT</for></wait>"),
    "a path in a predicate begins at its node": sequence(expression("count($paper[o:number = 1]/o:number[. = 1])")),
    "counters are judged when they are evaluated": sequence(
        '<forEach counterName="i" parallel="no"><startCounterValue>4294967296</startCounterValue>'
        "<finalCounterValue>-1</finalCounterValue><scope><empty/></scope></forEach>"
    ),
    "messages of two types are told apart when they are copied": sequence(
        copy('<from variable="order"/>', '<to variable="receipt"/>')
    ),
    "join conditions of links with not": sequence(join("not($a) or (true() and $a)")),
    "an outer scope's names may be hidden": sequence(
        scope(
            '<partnerLinks><partnerLink name="shop" partnerLinkType="o:Buying" partnerRole="shop"/></partnerLinks>'
            '<variables><variable name="order" type="xsd:int"/></variables>'
            '<correlationSets><correlationSet name="numbers" properties="o:number"/></correlationSets><empty/>'
        )
    ),
    "an element in the place of a message with one part": sequence(
        '<receive partnerLink="buyer" operation="tell" variable="paper"/>'
    ),
    "an event handler's own scope declares what it uses": with_events(
        EVENT.format(
            f'{TOLD} messageExchange="x"',
            '<correlations><correlation set="y"/></correlations>',
            '<messageExchanges><messageExchange name="x"/></messageExchanges>'
            '<correlationSets><correlationSet name="y" properties="o:number"/></correlationSets>',
        )
    ),
    "a link out of a handler": sequence(
        FLOW.format(
            LINK.format("a"),
            scope(FAULTY.format(f"<catchAll>{empty(source('a'))}</catchAll>") + "<empty/>") + empty(target("a")),
        )
    ),
    "links of the same name in flows of their own": sequence(join("$a"), join("$a")),
    "scopes of the same name in scopes of their own": sequence(
        scope(scope("<empty/>", 'name="twin"'), 'name="one"'), scope(scope("<empty/>", 'name="twin"'), 'name="two"')
    ),
    "an invoke with handlers can be undone": sequence(
        scope(
            FAULTY.format('<catchAll><compensateScope target="ask"/></catchAll>')
            + INVOKE.format(' name="ask"', "<compensationHandler><empty/></compensationHandler>")
        )
    ),
    "what waits for the beginning may stand beside it": beginning(LATER, REPLY),
    "two beginnings that join": beginning(
        "<flow>",
        TAKE.format("tell", JOINED.format("join")),
        TAKE.format("buy", JOINED.format("join")),
        "</flow>",
        REPLY,
    ),
    "two beginnings of which one is not correlated": beginning(
        "<flow>", TAKE.format("tell", JOINED.format("yes")), TAKE.format("buy", ""), "</flow>", REPLY
    ),
    "two beginnings with a set in common and others": process(
        IMPORT
        + LINKS
        + VARIABLES
        + OTHER_SETS
        + "<sequence><flow>"
        + TAKE.format("tell", JOINED.format("join"))
        + TAKE.format(
            "buy",
            JOINED.format("join").replace("</correlations>", '<correlation set="more" initiate="yes"/></correlations>'),
        )
        + f"</flow>{REPLY}</sequence>"
    ),
    "a variable of any type": declaring(variables='<variable name="x" type="xsd:anyType"/>'),
    "a service reference": declaring(
        variables='<variable xmlns:r="http://docs.oasis-open.org/wsbpel/2.0/serviceref" name="x" '
        'element="r:service-ref"/>'
    ),
}


@pytest.mark.parametrize("why", GOOD)
def test_a_process_that_breaks_no_rule_is_read(tmp_path: Path, why: str) -> None:
    assert load_bpel(put(tmp_path, GOOD[why])).name == "buying"


def test_two_wsdl_documents_may_bring_the_same_types(tmp_path: Path) -> None:
    again = WSDL.replace("o:", "other:").replace("xmlns:o=", "xmlns:other=").split("<binding")[0] + "</definitions>"
    both = f'<import namespace="urn:orders" location="again.wsdl" importType="{WSDL_TYPE}"/>'
    text = sequence().replace("<import", f"{both}<import", 1)
    assert load_bpel(put(tmp_path, text, again_wsdl=again)).name == "buying"


def test_what_a_document_that_is_not_read_may_define_is_taken_as_defined(tmp_path: Path) -> None:
    soap = 'xmlns:e="http://schemas.xmlsoap.org/soap/encoding/"'
    used = (
        '<xsd:import namespace="http://schemas.xmlsoap.org/soap/encoding/"/><xsd:element name="list" type="e:Array"/>'
    )
    wsdl = WSDL.replace('elementFormDefault="qualified">', f'elementFormDefault="qualified" {soap}>{used}', 1)
    assert load_bpel(put(tmp_path, sequence(), orders_wsdl=wsdl)).name == "buying"
