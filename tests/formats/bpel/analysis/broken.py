"""For each rule of static analysis, processes that break it and nothing else, each beside the number of its rule. What
is another in the usual WSDL is in `wsdl`."""

from typing import NamedTuple

from tests.formats.bpel.documents import HEAD, IMPORT, LINKS, RECEIVE, REPLY, SETS, VARIABLES, process, sequence

EVENT = '<onEvent partnerLink="buyer" operation="tell"{}>{}<scope>{}<empty/></scope></onEvent>'
TOLD = ' variable="told" messageType="o:orderMessage"'
INVOKE = '<invoke partnerLink="shop" operation="buy" inputVariable="order" outputVariable="receipt"{}>{}</invoke>'
TELL = '<invoke partnerLink="shop" operation="tell"{}>{}</invoke>'
FAULTY = "<faultHandlers>{}</faultHandlers>"
FLOW = "<flow><links>{}</links>{}</flow>"
LINK = '<link name="{}"/>'
TO_ORDER = '<toParts><toPart part="order" fromVariable="paper"/></toParts>'
INTO_PAPER = '<fromParts><fromPart part="order" toVariable="paper"/></fromParts>'
INTO_PAPER_FROM_X = INTO_PAPER.replace("order", "x")
ASKED = "bpel:getVariableProperty('order', 'o:number')"


TELLING = '<operation name="tell"><input'
ASKING = '<input message="o:orderMessage"/>'
ANSWERING = '<output message="o:receiptMessage"/>'
NUMBER = '<xsd:element name="number" type="xsd:int"/>\n    </xsd:schema>'
PROPERTY = '<vprop:property name="number"'


class Broken(NamedTuple):
    number: int
    text: str
    wsdl: tuple[tuple[str, str], ...] = ()


def more(text: str) -> tuple[tuple[str, str], ...]:
    """The WSDL says this too."""
    return (("</definitions>", f"{text}</definitions>"),)


def another_schema(type: str) -> str:
    number = f'<xsd:element name="number" type="xsd:{type}"/>'
    return f'<xsd:schema targetNamespace="urn:orders">{number}</xsd:schema>'


def copy(source: str, target: str = '<to variable="number"/>', attributes: str = "") -> str:
    return f"<assign><copy {attributes}>{source}{target}</copy></assign>"


def expression(text: str) -> str:
    return copy(f"<from>{text}</from>")


def source(link: str, inner: str = "") -> str:
    return f'<sources><source linkName="{link}">{inner}</source></sources>'


def target(link: str, join: str = "") -> str:
    return f'<targets>{join}<target linkName="{link}"/></targets>'


def empty(*ends: str) -> str:
    return f"<empty>{''.join(ends)}</empty>"


def join(text: str) -> str:
    return FLOW.format(
        LINK.format("a"), empty(source("a")) + empty(target("a", f"<joinCondition>{text}</joinCondition>"))
    )


def scope(inner: str, attributes: str = "") -> str:
    return f"<scope {attributes}>{inner}</scope>"


def with_events(*handlers: str) -> str:
    return sequence(before=f"<eventHandlers>{''.join(handlers)}</eventHandlers>")


def declaring(*, links: str = "", variables: str = "", sets: str = "") -> str:
    """A process that declares this besides."""
    head = (
        IMPORT
        + LINKS.replace("</partnerLinks>", f"{links}</partnerLinks>")
        + VARIABLES.replace("</variables>", f"{variables}</variables>")
        + SETS.replace("</correlationSets>", f"{sets}</correlationSets>")
    )
    return process(f"{head}<sequence>{RECEIVE}{REPLY}</sequence>")


def importing(text: str) -> str:
    return process(f"{text}{HEAD}<sequence>{RECEIVE}{REPLY}</sequence>")


def beginning(*steps: str) -> str:
    return process(f"{HEAD}<sequence>{''.join(steps)}</sequence>")


JOINED = '<correlations><correlation set="numbers" initiate="{}"/></correlations>'
TAKE = '<receive partnerLink="buyer" operation="{}" variable="order" createInstance="yes">{}</receive>'
OTHER_SETS = SETS.replace("</correlationSets>", '<correlationSet name="more" properties="o:number"/></correlationSets>')
DEEP = scope(scope("<empty/>", 'name="deep"'), 'name="middle"')
BROKEN = [
    Broken(1, sequence(), ((TELLING, '<operation name="tell"><output'),)),
    Broken(
        1,
        sequence(),
        (
            (f"{ASKING}\n      {ANSWERING}", "<!-- -->"),
            ('<fault name="soldOut"', f'{ANSWERING}{ASKING}<fault name="soldOut"'),
        ),
    ),
    Broken(2, sequence(), ((TELLING, f'{TELLING} message="o:countMessage"/></operation>{TELLING}'),)),
    Broken(
        3,
        sequence(
            scope(
                FAULTY.format('<catch faultName="bpel:selectionFailure"><empty/></catch>') + "<empty/>",
                'exitOnStandardFault="yes"',
            )
        ),
    ),
    Broken(4, sequence(copy('<from expressionLanguage="urn:xquery">1</from>'))),
    Broken(5, sequence('<receive partnerLink="buyer" operation="tell" portType="o:Store" variable="order"/>')),
    Broken(6, sequence("<rethrow/>")),
    Broken(7, sequence(scope("<empty/>", 'name="inner"'), '<compensateScope target="inner"/>')),
    Broken(8, sequence("<compensate/>")),
    Broken(9, importing('<extensions><extension namespace="urn:more" mustUnderstand="yes"/></extensions>')),
    Broken(10, declaring(variables='<variable name="x" element="o:nothing"/>')),
    Broken(10, declaring(variables='<variable name="x" type="xsd:quantity"/>')),
    Broken(10, declaring(variables='<variable name="x" messageType="o:nothing"/>')),
    Broken(10, declaring(links='<partnerLink name="x" partnerLinkType="o:Nothing" myRole="shop"/>')),
    Broken(10, declaring(sets='<correlationSet name="x" properties="o:nothing"/>')),
    Broken(10, sequence(), ((NUMBER, '<xsd:element name="number" type="o:nothing"/></xsd:schema>'),)),
    Broken(
        11,
        importing(
            '<import namespace="urn:other" location="orders.wsdl" importType="http://schemas.xmlsoap.org/wsdl/"/>'
        ),
    ),
    Broken(12, importing('<import location="orders.wsdl" importType="http://schemas.xmlsoap.org/wsdl/"/>')),
    Broken(13, importing('<import namespace="urn:orders" location="orders.wsdl" importType="urn:relax"/>')),
    Broken(14, sequence(), ((NUMBER, "</xsd:schema>" + another_schema("int") + another_schema("long")),)),
    Broken(15, process(f"{HEAD}<empty/>")),
    Broken(16, declaring(links='<partnerLink name="x" partnerLinkType="o:Buying"/>')),
    Broken(
        17,
        declaring(links='<partnerLink name="x" partnerLinkType="o:Buying" myRole="shop" initializePartnerRole="no"/>'),
    ),
    Broken(18, declaring(links='<partnerLink name="shop" partnerLinkType="o:Buying" partnerRole="shop"/>')),
    Broken(19, sequence(), more('<vprop:property name="x" type="xsd:int" element="o:number"/>')),
    Broken(20, sequence(), more('<vprop:propertyAlias propertyName="o:number" messageType="o:countMessage"/>')),
    Broken(
        21,
        sequence(
            '<receive partnerLink="buyer" operation="count"><correlations><correlation set="numbers"/></correlations>'
            '<fromParts><fromPart part="count" toVariable="number"/></fromParts></receive>'
        ),
    ),
    Broken(21, sequence(copy('<from variable="receipt" property="o:number"/>'))),
    Broken(21, sequence(expression("bpel:getVariableProperty('receipt', 'o:number')"))),
    Broken(
        22, sequence(), more('<vprop:propertyAlias propertyName="o:number" messageType="o:orderMessage" part="order"/>')
    ),
    Broken(23, declaring(variables='<variable name="number" type="xsd:int"/>')),
    Broken(24, declaring(variables='<variable name="a.b" type="xsd:int"/>')),
    Broken(25, declaring(variables='<variable name="x" type="xsd:int" element="o:number"/>')),
    Broken(25, declaring(variables='<variable name="x"/>')),
    Broken(27, sequence(expression("/o:order/o:number"))),
    Broken(27, sequence("<if><condition>o:order/o:number = 1</condition><empty/></if>")),
    Broken(27, sequence(expression("$paper/o:number + @count"))),
    Broken(28, sequence(join(f"$a and {ASKED}"))),
    Broken(29, sequence(), (("<vprop:query>o:number<", "<vprop:query>o:number[. = $order]<"),)),
    Broken(30, sequence(expression("bpel:getVariableProperty('order', $number)"))),
    Broken(31, sequence(expression("bpel:getVariableProperty('order', 'the number')"))),
    Broken(31, sequence(expression("bpel:getVariableProperty('order', 'nobody:number')"))),
    Broken(32, sequence(copy('<from variable="number">1</from>'))),
    Broken(33, sequence(copy("<from>1</from>", "<to>concat($paper, '')</to>"))),
    Broken(34, sequence(copy('<from variable="paper" part="order"/>', '<to variable="order" part="order"/>'))),
    Broken(35, sequence(copy('<from partnerLink="shop" endpointReference="myRole"/>', '<to partnerLink="shop"/>'))),
    Broken(
        36, sequence(copy('<from partnerLink="buyer" endpointReference="partnerRole"/>', '<to partnerLink="shop"/>'))
    ),
    Broken(
        37, sequence(copy('<from partnerLink="shop" endpointReference="partnerRole"/>', '<to partnerLink="buyer"/>'))
    ),
    Broken(38, sequence(copy("<from><literal><o:number/><o:number/></literal></from>"))),
    Broken(38, sequence(copy("<from><literal>one <o:number/></literal></from>"))),
    Broken(39, sequence(expression("bpel:doXslTransform(concat('a', '.xsl'), $paper)"))),
    Broken(40, sequence(expression("bpel:doXslTransform('a.xsl', $paper, 'name')"))),
    Broken(41, sequence(expression("bpel:doXslTransform('a.xsl', $paper, $number, 1)"))),
    Broken(42, sequence(copy('<from variable="number"/>', '<to variable="number"/>', 'keepSrcElementName="yes"'))),
    Broken(43, sequence(copy('<from variable="order"/>', '<to variable="paper"/>'))),
    Broken(44, declaring(sets='<correlationSet name="numbers" properties="o:number"/>')),
    Broken(45, sequence(), ((f'{PROPERTY} type="xsd:int"/>', f'{PROPERTY} element="o:order"/>'),)),
    Broken(46, sequence(INVOKE.format("", '<correlations><correlation set="numbers"/></correlations>'))),
    Broken(
        46,
        sequence(
            TELL.format(
                ' inputVariable="order"', '<correlations><correlation set="numbers" pattern="request"/></correlations>'
            )
        ),
    ),
    Broken(47, sequence(TELL.format("", ""))),
    Broken(47, sequence('<invoke partnerLink="shop" operation="buy" inputVariable="order"/>')),
    Broken(47, sequence('<receive partnerLink="buyer" operation="tell"/>')),
    Broken(47, sequence(TELL.format(' inputVariable="order" outputVariable="receipt"', ""))),
    Broken(48, sequence(TELL.format(' inputVariable="receipt"', ""))),
    Broken(
        50,
        sequence(
            '<invoke partnerLink="shop" operation="count"><toParts><toPart part="count" fromVariable="number"/>'
            "</toParts>"
            '<fromParts><fromPart part="count" toVariable="number"/></fromParts></invoke>'
        ),
    ),
    Broken(51, sequence(TELL.format(' inputVariable="order"', TO_ORDER))),
    Broken(
        52,
        sequence(INVOKE.format("", '<fromParts><fromPart part="receipt" toVariable="number"/></fromParts>')),
    ),
    Broken(
        53,
        sequence(f'<receive partnerLink="buyer" operation="tell">{INTO_PAPER_FROM_X}</receive>'),
    ),
    Broken(
        54,
        sequence(TELL.format("", TO_ORDER.replace("</toParts>", '<toPart part="x" fromVariable="paper"/></toParts>'))),
    ),
    Broken(55, sequence(f'<receive partnerLink="buyer" operation="tell" variable="order">{INTO_PAPER}</receive>')),
    Broken(56, beginning("<empty/>", RECEIVE, REPLY)),
    Broken(56, beginning("<flow>", RECEIVE, "<empty/></flow>", REPLY)),
    Broken(56, beginning("<while><condition>true()</condition>", RECEIVE, "</while>", REPLY)),
    Broken(
        57,
        beginning(
            "<flow>",
            TAKE.format("tell", JOINED.format("yes")),
            TAKE.format("buy", JOINED.format("join")),
            "</flow>",
            REPLY,
        ),
    ),
    Broken(
        57,
        process(
            IMPORT
            + LINKS
            + VARIABLES
            + OTHER_SETS
            + "<sequence><flow>"
            + TAKE.format("tell", JOINED.format("join"))
            + TAKE.format("buy", JOINED.format("join").replace("numbers", "more"))
            + f"</flow>{REPLY}</sequence>"
        ),
    ),
    Broken(58, sequence('<receive partnerLink="buyer" operation="tell" variable="receipt"/>')),
    Broken(58, sequence('<reply partnerLink="buyer" operation="buy" faultName="o:soldOut" variable="receipt"/>')),
    Broken(
        59,
        sequence(
            '<reply partnerLink="buyer" operation="buy" variable="receipt"><toParts>'
            '<toPart part="receipt" fromVariable="number"/></toParts></reply>'
        ),
    ),
    Broken(61, sequence('<receive partnerLink="buyer" operation="tell" variable="order" messageExchange="x"/>')),
    Broken(
        62,
        beginning(
            '<pick createInstance="yes"><onMessage partnerLink="buyer" operation="tell" variable="order"><empty/>'
            "</onMessage><onAlarm><for>'PT1S'</for><empty/></onAlarm></pick>"
        ),
    ),
    Broken(
        63,
        sequence(
            f'<pick><onMessage partnerLink="buyer" operation="tell" variable="order">{INTO_PAPER}<empty/></onMessage>'
            "</pick>"
        ),
    ),
    Broken(64, sequence(FLOW.format(LINK.format("a") * 2, empty(source("a")) + empty(target("a"))))),
    Broken(65, sequence(empty(source("nowhere")))),
    Broken(66, sequence(FLOW.format(LINK.format("a"), empty(source("a"))))),
    Broken(66, sequence(FLOW.format(LINK.format("a"), empty(source("a")) * 2 + empty(target("a"))))),
    Broken(
        67,
        sequence(
            FLOW.format(
                LINK.format("a") + LINK.format("b"),
                '<empty><sources><source linkName="a"/><source linkName="b"/></sources></empty>'
                '<empty><targets><target linkName="a"/><target linkName="b"/></targets></empty>',
            )
        ),
    ),
    Broken(
        68,
        sequence(
            FLOW.format(
                LINK.format("a"),
                '<empty><sources><source linkName="a"/><source linkName="a"/></sources></empty>' + empty(target("a")),
            )
        ),
    ),
    Broken(
        69,
        sequence(
            FLOW.format(
                LINK.format("a"),
                empty(source("a")) + '<empty><targets><target linkName="a"/><target linkName="a"/></targets></empty>',
            )
        ),
    ),
    Broken(
        70,
        sequence(
            FLOW.format(
                LINK.format("a"),
                f"<while><condition>false()</condition>{empty(source('a'))}</while>{empty(target('a'))}",
            )
        ),
    ),
    Broken(
        71,
        sequence(
            FLOW.format(
                LINK.format("a"),
                empty(source("a")) + scope(FAULTY.format(f"<catchAll>{empty(target('a'))}</catchAll>") + "<empty/>"),
            )
        ),
    ),
    Broken(
        71,
        sequence(
            FLOW.format(
                LINK.format("a"),
                scope(FAULTY.format(f"<catchAll>{empty(source('a'))}</catchAll>") + empty(target("a"))),
            )
        ),
    ),
    Broken(
        72,
        sequence(
            FLOW.format(
                LINK.format("a") + LINK.format("b"),
                empty(target("b"), source("a")) + empty(target("a"), source("b")),
            )
        ),
    ),
    Broken(
        72, sequence(FLOW.format(LINK.format("a"), f"<sequence>{empty(target('a'))}{empty(source('a'))}</sequence>"))
    ),
    Broken(73, sequence(join("$a and $number = 1"))),
    Broken(
        76,
        sequence(
            '<forEach counterName="i" parallel="no"><startCounterValue>1</startCounterValue>'
            "<finalCounterValue>2</finalCounterValue><scope><variables>"
            '<variable name="i" type="xsd:int"/></variables><empty/></scope></forEach>'
        ),
    ),
    Broken(
        77, sequence(scope(FAULTY.format('<catchAll><compensateScope target="deep"/></catchAll>') + DEEP, 'name="out"'))
    ),
    Broken(
        78,
        sequence(
            scope(FAULTY.format('<catchAll><compensateScope target="idle"/></catchAll>') + '<empty name="idle"/>')
        ),
    ),
    Broken(
        79,
        sequence(
            scope(
                "<compensationHandler><scope><compensationHandler><empty/></compensationHandler><empty/></scope>"
                "</compensationHandler><empty/>"
            )
        ),
    ),
    Broken(80, sequence(scope("<faultHandlers/><empty/>"))),
    Broken(81, sequence(scope(FAULTY.format('<catch faultVariable="f"><empty/></catch>') + "<empty/>"))),
    Broken(81, sequence(scope(FAULTY.format('<catch faultElement="o:trouble"><empty/></catch>') + "<empty/>"))),
    Broken(
        82,
        sequence(
            FLOW.format(
                LINK.format("a") + LINK.format("b"),
                scope(f"<flow>{empty(source('a'))}{empty(target('b'))}</flow>", 'name="one"')
                + scope(f"<flow>{empty(target('a'))}{empty(source('b'))}</flow>", 'name="two"'),
            )
        ),
    ),
    Broken(83, with_events()),
    Broken(84, with_events(EVENT.format(TOLD, "", "").replace("buyer", "nobody"))),
    Broken(84, with_events(EVENT.format(TOLD, "", "").replace("buyer", "shop"))),
    Broken(85, with_events(EVENT.format(TOLD, INTO_PAPER, ""))),
    Broken(86, with_events(EVENT.format(TOLD, "", '<variables><variable name="told" type="xsd:int"/></variables>'))),
    Broken(87, with_events(EVENT.format(TOLD.replace("orderMessage", "receiptMessage"), "", ""))),
    Broken(87, with_events(EVENT.format(' variable="told" element="o:receipt"', "", ""))),
    Broken(88, with_events(EVENT.format(TOLD, '<correlations><correlation set="x"/></correlations>', ""))),
    Broken(89, with_events(EVENT.format(f'{TOLD} messageExchange="x"', "", ""))),
    Broken(90, with_events(EVENT.format(' variable="told"', "", ""))),
    Broken(91, sequence(scope(scope("<empty/>", 'isolated="yes"'), 'isolated="yes"'))),
    Broken(92, sequence(scope("<empty/>", 'name="twin"'), scope("<empty/>", 'name="twin"'))),
    Broken(
        93,
        sequence(scope(FAULTY.format('<catch faultName="o:x"><empty/></catch>' * 2) + "<empty/>")),
    ),
]
