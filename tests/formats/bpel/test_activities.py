"""Each activity of BPEL, as the model has it."""

from pathlib import Path

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Assign,
    Choose,
    Compensate,
    Empty,
    Exit,
    Flow,
    ForEach,
    Invoke,
    LinkSource,
    Parallel,
    Pick,
    Receive,
    Reply,
    Rethrow,
    Scope,
    Sequence,
    Throw,
    Until,
    Validate,
    Wait,
    While,
)
from mendflow.core.model.xml import (
    Correlation,
    PartCopy,
    PartnerLink,
    XmlMessage,
    XmlType,
)
from tests.formats.bpel.documents import HEAD, RECEIVE, REPLY, body, flow, process, put, sequence, step, xpath


def test_a_process_is_a_scope_with_what_it_declares(tmp_path: Path) -> None:  # FM-1
    read = flow(tmp_path, sequence())
    assert read.name == "buying" and isinstance(read.body, Scope) and read.body.name == "buying"
    declared = read.body.declared
    assert declared is not None
    assert declared.partner_links["buyer"] == PartnerLink(
        type="{urn:orders}Buying", mine="{urn:orders}Shop", my_role="shop"
    )
    assert declared.types["order"] == XmlType(message="{urn:orders}orderMessage")
    assert declared.types["number"] == XmlType(type="{http://www.w3.org/2001/XMLSchema}int")
    assert declared.types["paper"] == XmlType(element="{urn:orders}order")
    assert declared.correlation_sets == {"numbers": ("{urn:orders}number",)}


def test_a_receive_listens_to_the_channel_of_its_partner_link(tmp_path: Path) -> None:
    inside = body(tmp_path, sequence()).body
    assert isinstance(inside, Sequence)
    assert inside.body[0] == Receive(
        name="take",
        channel="buyer.buy",
        xml=XmlMessage(partner_link="buyer", operation="buy", variable="order", creates=True),
        suppress_join_failure=False,
    )
    assert inside.body[1] == Reply(
        name="answer",
        channel="buyer.buy",
        xml=XmlMessage(partner_link="buyer", operation="buy", variable="receipt"),
        suppress_join_failure=False,
    )


def test_parts_correlations_and_exchanges_go_with_their_message(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<receive partnerLink="buyer" operation="tell" messageExchange="m"><correlations>'
        '<correlation set="numbers" initiate="join"/></correlations>'
        '<fromParts><fromPart part="order" toVariable="paper"/></fromParts></receive>',
        before='<messageExchanges><messageExchange name="m"/></messageExchanges>',
    )
    assert isinstance(read, Receive) and read.exchange == "m" and read.xml is not None
    assert read.xml.parts == (PartCopy(part="order", variable="paper"),)
    assert read.xml.correlations == (Correlation(set="numbers", initiate="join"),)


def test_a_reply_may_carry_a_fault(tmp_path: Path) -> None:
    read = step(tmp_path, '<reply partnerLink="buyer" operation="buy" faultName="o:soldOut" variable="trouble"/>')
    assert isinstance(read, Reply) and read.fault == "{urn:orders}soldOut"


def test_an_invoke_sends_and_gets(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<invoke name="ask" partnerLink="shop" operation="buy" inputVariable="order" outputVariable="receipt">'
        '<correlations><correlation set="numbers" pattern="request" initiate="yes"/></correlations></invoke>',
    )
    assert read == Invoke(
        name="ask",
        partner="shop",
        operation="buy",
        sends=XmlMessage(
            partner_link="shop",
            operation="buy",
            variable="order",
            correlations=(Correlation(set="numbers", initiate="yes", pattern="request"),),
        ),
        gets=XmlMessage(partner_link="shop", operation="buy", variable="receipt"),
        suppress_join_failure=False,
    )


def test_an_invoke_of_a_one_way_operation_gets_nothing(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<invoke partnerLink="shop" operation="tell"><toParts><toPart part="order" fromVariable="paper"/></toParts>'
        "</invoke>",
    )
    assert isinstance(read, Invoke) and read.gets is None and read.sends is not None
    assert read.sends.parts == (PartCopy(part="order", variable="paper"),)


def test_an_invoke_with_handlers_keeps_its_name_and_stands_in_a_scope(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<invoke name="ask" partnerLink="shop" operation="tell" inputVariable="order"><targets/>'
        '<catch faultName="o:soldOut" faultVariable="trouble" faultMessageType="o:troubleMessage"><empty/></catch>'
        "<catchAll><exit/></catchAll><compensationHandler><empty/></compensationHandler></invoke>",
    )
    assert isinstance(read, Scope) and read.name == "ask~2" and read.body.name == "ask"
    named, all = read.catches
    assert (named.fault, named.variable) == ("{urn:orders}soldOut", "trouble")
    assert named.holds == XmlType(message="{urn:orders}troubleMessage")
    assert all.fault is None and all.holds is None and isinstance(all.body, Exit)
    assert isinstance(read.compensation, Empty)


def test_standard_faults_have_bare_names_and_others_their_namespace(tmp_path: Path) -> None:  # FM-7
    names = {
        "bpel:joinFailure": "joinFailure",
        "joinFailure": "joinFailure",
        "o:joinFailure": "{urn:orders}joinFailure",
        "bpel:mine": "mine",
    }
    for written, name in names.items():
        read = step(tmp_path, f'<throw faultName="{written}" faultVariable="order"/>')
        assert isinstance(read, Throw) and (read.fault, read.variable) == (name, "order")


def test_the_plain_activities(tmp_path: Path) -> None:
    assert isinstance(step(tmp_path, "<empty/>"), Empty)
    assert isinstance(step(tmp_path, "<exit/>"), Exit)
    waiting = step(tmp_path, "<wait><for>'PT1S'</for></wait>")
    assert isinstance(waiting, Wait) and waiting.duration == xpath("'PT1S'") and waiting.until is None
    waiting = step(tmp_path, "<wait><until>'2030-01-01'</until></wait>")
    assert isinstance(waiting, Wait) and waiting.until == xpath("'2030-01-01'")
    judged = step(tmp_path, '<validate variables="order receipt"/>')
    assert isinstance(judged, Validate) and judged.variables == ("order", "receipt")


def test_choices_and_loops(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        "<if><condition>$number = 1</condition><empty/><elseif><condition>$number = 2</condition><exit/></elseif>"
        "<else><empty/></else></if>",
    )
    assert isinstance(read, Choose)
    assert [branch.when.text for branch in read.branches] == ["$number = 1", "$number = 2"]
    assert isinstance(read.branches[1].body, Exit) and isinstance(read.otherwise, Empty)
    read = step(tmp_path, "<while><condition>true()</condition><empty/></while>")
    assert isinstance(read, While) and read.condition == xpath("true()")
    read = step(tmp_path, "<repeatUntil><empty/><condition>true()</condition></repeatUntil>")
    assert isinstance(read, Until) and read.condition == xpath("true()")


def test_a_broken_expression_is_for_the_run_to_find(tmp_path: Path) -> None:  # FM-6
    read = step(tmp_path, "<while><condition></condition><empty/></while>")
    assert isinstance(read, While) and read.condition == xpath("")


def test_a_for_each_counts_and_may_have_enough(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<forEach counterName="n" parallel="yes"><startCounterValue>1</startCounterValue>'
        "<finalCounterValue>$number</finalCounterValue><completionCondition>"
        '<branches successfulBranchesOnly="yes">2</branches></completionCondition><scope><empty/></scope></forEach>',
    )
    assert isinstance(read, ForEach) and read.parallel and read.variable == "n"
    assert (read.first, read.last, read.min_success) == (xpath("1"), xpath("$number"), xpath("2"))
    assert read.min_ended is None


def test_a_flow_has_links_with_conditions(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<flow><links><link name="a"/></links>'
        '<empty name="one"><sources><source linkName="a">'
        "<transitionCondition>$number > 1</transitionCondition></source></sources></empty>"
        '<empty name="two" suppressJoinFailure="yes"><targets><joinCondition>$a</joinCondition><target linkName="a"/>'
        "</targets></empty></flow>",
    )
    assert isinstance(read, Parallel) and read.links == ("a",)
    one, two = read.branches
    assert one.sources == (LinkSource(link="a", when=xpath("$number > 1")),) and not one.suppress_join_failure
    assert two.targets == ("a",) and two.join == xpath("$a") and two.suppress_join_failure


def test_what_becomes_of_a_join_failure_is_inherited(tmp_path: Path) -> None:
    text = process(f"{HEAD}<sequence>{RECEIVE}<flow><empty/></flow>{REPLY}</sequence>", 'suppressJoinFailure="yes"')
    inside = body(tmp_path, text).body
    assert isinstance(inside, Sequence) and isinstance(inside.body[1], Parallel)
    assert inside.body[1].branches[0].suppress_join_failure


def test_a_pick_may_begin_a_case(tmp_path: Path) -> None:
    text = process(
        f'{HEAD}<pick createInstance="yes"><onMessage partnerLink="buyer" operation="tell" variable="order"><empty/>'
        "</onMessage></pick>"
    )
    inside = body(tmp_path, text).body
    assert isinstance(inside, Pick)
    message = inside.messages[0]
    assert message.channel == "buyer.tell" and message.variable == "" and message.xml is not None
    assert message.xml.creates and message.xml.variable == "order"
    read = step(
        tmp_path,
        '<pick><onMessage partnerLink="buyer" operation="tell" variable="order"><empty/></onMessage>'
        "<onAlarm><for>'PT1S'</for><exit/></onAlarm></pick>",
    )
    assert isinstance(read, Pick) and read.alarms[0].duration == xpath("'PT1S'")


def test_a_scope_has_all_its_handlers(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<scope name="s" isolated="yes" exitOnStandardFault="yes"><faultHandlers>'
        '<catch faultElement="o:trouble" faultVariable="t"><rethrow/></catch>'
        '<catchAll><compensateScope target="inner"/></catchAll></faultHandlers>'
        "<compensationHandler><compensate/></compensationHandler><terminationHandler><exit/></terminationHandler>"
        "<eventHandlers><onAlarm><for>'PT1S'</for><repeatEvery>'PT2S'</repeatEvery><scope><empty/></scope></onAlarm>"
        '</eventHandlers><sequence><scope name="inner"><empty/></scope></sequence></scope>',
    )
    assert isinstance(read, Scope) and read.isolated and read.exit_on_standard_fault
    assert read.catches[0].fault is None and read.catches[0].holds == XmlType(element="{urn:orders}trouble")
    assert isinstance(read.catches[0].body, Rethrow)
    assert read.catches[1].body == Compensate(name="compensateScope", scope="inner", suppress_join_failure=False)
    assert isinstance(read.compensation, Compensate) and read.compensation.scope is None
    assert isinstance(read.termination, Exit)
    assert (read.alarms[0].duration, read.alarms[0].every) == (xpath("'PT1S'"), xpath("'PT2S'"))


def test_exit_on_standard_fault_is_inherited_unless_said_otherwise(tmp_path: Path) -> None:
    text = process(
        f"{HEAD}<sequence>{RECEIVE}<scope><scope exitOnStandardFault='no'><empty/></scope></scope>{REPLY}</sequence>",
        'exitOnStandardFault="yes"',
    )
    read = body(tmp_path, text)
    assert read.exit_on_standard_fault and isinstance(read.body, Sequence)
    outer = read.body.body[1]
    assert isinstance(outer, Scope) and outer.exit_on_standard_fault
    assert isinstance(outer.body, Scope) and not outer.body.exit_on_standard_fault


ON_EVENT = """<eventHandlers><onEvent partnerLink="buyer" operation="buy" variable="again"
    messageType="o:orderMessage" messageExchange="m"><scope name="event">
    <messageExchanges><messageExchange name="m"/></messageExchanges><variables>
    <variable name="own" type="xsd:int"/></variables><empty/></scope></onEvent></eventHandlers>"""


def test_an_event_handler_declares_what_its_scope_does_and_its_own_variable(tmp_path: Path) -> None:
    message = body(tmp_path, sequence(before=ON_EVENT)).messages[0]
    assert message.exchange == "m" and message.declared is not None
    assert message.declared.exchanges == ("m",)
    assert message.declared.types == {
        "again": XmlType(message="{urn:orders}orderMessage"),
        "own": XmlType(type="{http://www.w3.org/2001/XMLSchema}int"),
    }
    assert isinstance(message.body, Scope) and message.body.name == "event" and message.body.declared is None


def test_variables_of_an_event_handler_have_the_types_of_their_parts(tmp_path: Path) -> None:
    handler = (
        '<eventHandlers><onEvent partnerLink="buyer" operation="count"><fromParts>'
        '<fromPart part="count" toVariable="many"/></fromParts><scope><empty/></scope></onEvent></eventHandlers>'
    )
    declared = body(tmp_path, sequence(before=handler)).messages[0].declared
    assert declared is not None
    assert declared.types == {"many": XmlType(type="{http://www.w3.org/2001/XMLSchema}int")}


def test_a_partner_link_that_hides_another_has_channels_of_its_own(tmp_path: Path) -> None:
    inner = '<partnerLinks><partnerLink name="buyer" partnerLinkType="o:Buying" myRole="shop"/></partnerLinks>'
    listening = '<receive name="again" partnerLink="buyer" operation="tell" variable="order"/>'
    read = step(tmp_path, f"<scope>{inner}{listening}</scope>")
    assert isinstance(read, Scope) and isinstance(read.body, Receive)
    assert read.body.channel == "buyer~2.tell"
    assert read.body.xml is not None and read.body.xml.partner_link == "buyer"


def test_activities_of_one_name_get_names_of_their_own_leaves_first(tmp_path: Path) -> None:
    read = step(tmp_path, '<scope name="x"><sequence name="x"><empty name="x"/><empty name="x"/></sequence></scope>')
    assert isinstance(read, Scope) and isinstance(read.body, Sequence)
    assert [read.name, read.body.name, *(each.name for each in read.body.body)] == ["x~3", "x~4", "x", "x~2"]


def test_a_handler_compensates_the_scope_that_it_means_where_several_have_that_name(tmp_path: Path) -> None:
    inner = '<scope name="x"><empty/></scope>'
    handlers = '<faultHandlers><catchAll><compensateScope target="x"/></catchAll></faultHandlers>'
    read = step(tmp_path, f"<sequence>{inner}<scope>{handlers}{inner}</scope></sequence>")
    assert isinstance(read, Sequence) and isinstance(read.body[1], Scope)
    assert isinstance(read.body[1].catches[0].body, Compensate)
    assert read.body[1].catches[0].body.scope == read.body[1].body.name == "x~2"


def test_what_others_have_added_is_left_aside(tmp_path: Path) -> None:  # FM-1
    text = sequence(
        '<empty xmlns:z="urn:z" z:colour="red"><z:note/><documentation>This does nothing.</documentation></empty>',
        before='<extensions><extension namespace="urn:z" mustUnderstand="no"/></extensions>',
    )
    assert isinstance(body(tmp_path, text).body, Sequence)


def test_an_activity_of_others_does_nothing_and_keeps_its_links(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<flow><links><link name="a"/></links><extensionActivity><z:paint name="p" xmlns:z="urn:z">'
        '<sources><source linkName="a"/></sources></z:paint></extensionActivity>'
        '<empty><targets><target linkName="a"/></targets></empty></flow>',
    )
    assert isinstance(read, Parallel)
    assert read.branches[0] == Empty(name="p", sources=(LinkSource(link="a"),), suppress_join_failure=False)


def test_what_stands_in_literals_and_activities_of_others_is_no_activity(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<sequence><extensionActivity><z:paint xmlns:z="urn:z"><receive name="x" variable="none"/></z:paint>'
        '</extensionActivity><assign name="a"><documentation><exit name="x"/></documentation><copy><from><literal>'
        '<throw name="x" faultName="no:such"/></literal></from><to variable="paper"/></copy></assign>'
        '<empty name="x"/></sequence>',
    )
    assert isinstance(read, Sequence) and [each.name for each in read.body] == ["paint", "a", "x"]


def test_an_assign_operation_of_others_does_nothing(tmp_path: Path) -> None:
    read = step(
        tmp_path, '<assign><extensionAssignOperation><z:x xmlns:z="urn:z"/></extensionAssignOperation></assign>'
    )
    assert isinstance(read, Assign) and read.xml == ()


def test_expressions_may_be_in_cel(tmp_path: Path) -> None:
    read = step(
        tmp_path, '<while><condition expressionLanguage="urn:mendflow:cel">1 &lt; 2</condition><empty/></while>'
    )
    assert isinstance(read, While) and read.condition == Expr("1 < 2")


def test_a_flow_is_written_the_same_when_it_was_read_again(tmp_path: Path) -> None:
    text = sequence(
        '<receive partnerLink="buyer" operation="tell" variable="order"><correlations>'
        '<correlation set="numbers" initiate="no"/></correlations></receive>'
    )
    written = msgspec.json.encode(flow(tmp_path, text))
    assert msgspec.json.encode(msgspec.json.decode(written, type=Flow)) == written


def test_a_process_is_named_as_flows_can_be(tmp_path: Path) -> None:
    path = put(tmp_path, sequence().replace('name="buying"', 'name="böse.Dinge"'))
    assert flow(tmp_path, path.read_text()).name == "b-se-Dinge"
