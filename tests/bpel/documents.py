"""Small processes as texts: a desk that is asked, told and made to spell, and a shop that it asks itself.

Most of them keep a trace: steps `note` letters in the variable `trace`, and the answer is what was noted, in order."""

from typing import Final

BPEL: Final = "http://docs.oasis-open.org/wsbpel/2.0/process/executable"
XSD: Final = "http://www.w3.org/2001/XMLSchema"
WSDL_TYPE: Final = "http://schemas.xmlsoap.org/wsdl/"

_HEAD = """xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
  xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:plnk="http://docs.oasis-open.org/wsbpel/2.0/plnktype"
  xmlns:vprop="http://docs.oasis-open.org/wsbpel/2.0/varprop" xmlns:d="urn:desk" xmlns:s="urn:shop" """

DESK: Final = f"""<definitions name="Desk" targetNamespace="urn:desk" {_HEAD}>
  <types><xsd:schema targetNamespace="urn:desk" elementFormDefault="qualified">
    <xsd:element name="question" type="xsd:int"/>
    <xsd:element name="answer" type="xsd:int"/>
    <xsd:element name="refusal" type="xsd:int"/>
    <xsd:element name="news" type="xsd:int"/>
    <xsd:element name="word" type="xsd:int"/>
    <xsd:element name="spelling" type="xsd:string"/>
    <xsd:complexType name="Order"><xsd:sequence>
      <xsd:element name="item" type="xsd:string" minOccurs="0" maxOccurs="unbounded"/>
      <xsd:element name="count" type="xsd:int" minOccurs="0"/>
    </xsd:sequence><xsd:attribute name="id" type="xsd:int"/></xsd:complexType>
    <xsd:element name="order" type="d:Order"/>
    <xsd:element name="offer" type="d:Order"/>
  </xsd:schema></types>
  <message name="questionMessage"><part name="in" element="d:question"/></message>
  <message name="answerMessage"><part name="out" element="d:answer"/></message>
  <message name="refusalMessage"><part name="payload" element="d:refusal"/></message>
  <message name="newsMessage"><part name="in" element="d:news"/></message>
  <message name="wordMessage"><part name="in" element="d:word"/></message>
  <message name="spellingMessage"><part name="out" element="d:spelling"/></message>
  <message name="pairMessage"><part name="left" type="xsd:int"/><part name="right" type="xsd:string"/></message>
  <portType name="Desk">
    <operation name="ask"><input message="d:questionMessage"/><output message="d:answerMessage"/>
      <fault name="refused" message="d:refusalMessage"/></operation>
    <operation name="tell"><input message="d:newsMessage"/></operation>
    <operation name="spell"><input message="d:wordMessage"/><output message="d:spellingMessage"/></operation>
  </portType>
  <binding name="DeskSoap" type="d:Desk">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <operation name="ask"><soap:operation soapAction="ask"/><input><soap:body use="literal"/></input>
      <output><soap:body use="literal"/></output>
      <fault name="refused"><soap:fault name="refused" use="literal"/></fault></operation>
    <operation name="tell"><soap:operation soapAction="tell"/><input><soap:body use="literal"/></input></operation>
    <operation name="spell"><soap:operation soapAction="spell"/><input><soap:body use="literal"/></input>
      <output><soap:body use="literal"/></output></operation>
  </binding>
  <service name="DeskService"><port name="DeskPort" binding="d:DeskSoap">
    <soap:address location="http://127.0.0.1/desk"/></port></service>
  <plnk:partnerLinkType name="DeskLink"><plnk:role name="clerk" portType="d:Desk"/></plnk:partnerLinkType>
  <vprop:property name="id" type="xsd:int"/>
  <vprop:propertyAlias propertyName="d:id" messageType="d:questionMessage" part="in"/>
  <vprop:propertyAlias propertyName="d:id" messageType="d:answerMessage" part="out"/>
  <vprop:propertyAlias propertyName="d:id" messageType="d:newsMessage" part="in"/>
  <vprop:propertyAlias propertyName="d:id" messageType="d:wordMessage" part="in"/>
  <vprop:propertyAlias propertyName="d:id" element="d:order"><vprop:query>@id</vprop:query></vprop:propertyAlias>
  <vprop:propertyAlias propertyName="d:id" messageType="d:pairMessage" part="left"><vprop:query>.</vprop:query>
  </vprop:propertyAlias>
  <vprop:property name="name" type="xsd:string"/>
  <vprop:propertyAlias propertyName="d:name" messageType="d:pairMessage" part="right">
    <vprop:query>text()</vprop:query></vprop:propertyAlias>
</definitions>
"""

SHOP: Final = f"""<definitions name="Shop" targetNamespace="urn:shop" {_HEAD}>
  <types><xsd:schema targetNamespace="urn:shop" elementFormDefault="qualified">
    <xsd:element name="wish" type="xsd:int"/>
    <xsd:element name="goods" type="xsd:int"/>
    <xsd:element name="trouble" type="xsd:int"/>
    <xsd:element name="hint" type="xsd:int"/>
  </xsd:schema></types>
  <message name="wishMessage"><part name="in" element="s:wish"/></message>
  <message name="goodsMessage"><part name="out" element="s:goods"/></message>
  <message name="troubleMessage"><part name="why" element="s:trouble"/></message>
  <message name="hintMessage"><part name="in" element="s:hint"/></message>
  <message name="nothingMessage"/>
  <portType name="Shop">
    <operation name="buy"><input message="s:wishMessage"/><output message="s:goodsMessage"/>
      <fault name="soldOut" message="s:troubleMessage"/></operation>
    <operation name="hint"><input message="s:hintMessage"/></operation>
    <operation name="nudge"><input message="s:nothingMessage"/></operation>
  </portType>
  <binding name="ShopSoap" type="s:Shop">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <operation name="buy"><soap:operation/><input><soap:body use="literal"/></input>
      <output><soap:body use="literal"/></output>
      <fault name="soldOut"><soap:fault name="soldOut" use="literal"/></fault></operation>
    <operation name="hint"><soap:operation/><input><soap:body use="literal"/></input></operation>
    <operation name="nudge"><soap:operation/><input><soap:body use="literal"/></input></operation>
  </binding>
  <service name="ShopService"><port name="ShopPort" binding="s:ShopSoap">
    <soap:address location="http://127.0.0.1:1/shop"/></port></service>
  <plnk:partnerLinkType name="ShopLink"><plnk:role name="shop" portType="s:Shop"/></plnk:partnerLinkType>
  <vprop:propertyAlias propertyName="d:id" messageType="s:wishMessage" part="in"/>
  <vprop:propertyAlias propertyName="d:id" messageType="s:goodsMessage" part="out"/>
  <vprop:propertyAlias propertyName="d:id" messageType="s:hintMessage" part="in"/>
</definitions>
"""

IMPORTS: Final = (
    f'<import namespace="urn:desk" location="desk.wsdl" importType="{WSDL_TYPE}"/>'
    f'<import namespace="urn:shop" location="shop.wsdl" importType="{WSDL_TYPE}"/>'
)
LINKS: Final = """
  <partnerLink name="desk" partnerLinkType="d:DeskLink" myRole="clerk"/>
  <partnerLink name="shop" partnerLinkType="s:ShopLink" partnerRole="shop"/>"""
VARIABLES: Final = """
  <variable name="question" messageType="d:questionMessage"/>
  <variable name="answer" messageType="d:answerMessage"/>
  <variable name="refusal" messageType="d:refusalMessage"/>
  <variable name="news" messageType="d:newsMessage"/>
  <variable name="word" messageType="d:wordMessage"/>
  <variable name="spelling" messageType="d:spellingMessage"/>
  <variable name="wish" messageType="s:wishMessage"/>
  <variable name="goods" messageType="s:goodsMessage"/>
  <variable name="trouble" messageType="s:troubleMessage"/>
  <variable name="hint" messageType="s:hintMessage"/>
  <variable name="pair" messageType="d:pairMessage"/>
  <variable name="order" element="d:order"/>
  <variable name="offer" element="d:offer"/>
  <variable name="whole" type="d:Order"/>
  <variable name="number" type="xsd:int"/>
  <variable name="unset" type="xsd:int"/>
  <variable name="trace" type="xsd:string"><from>''</from></variable>"""


def process(*inside: str, variables: str = "", links: str = "", sets: str = "", attributes: str = "") -> str:
    """A process that knows the desk and the shop; `inside` is all that comes after its declarations."""
    names = f"<correlationSet name='talk' properties='d:id'/><correlationSet name='aside' properties='d:id'/>{sets}"
    return (
        f'<process name="play" targetNamespace="urn:play" xmlns="{BPEL}" xmlns:bpel="{BPEL}" xmlns:d="urn:desk" '
        f'xmlns:s="urn:shop" xmlns:xsd="{XSD}" xmlns:p="urn:play" {attributes}>\n{IMPORTS}\n'
        f"<partnerLinks>{LINKS}{links}</partnerLinks>\n<messageExchanges><messageExchange name='first'/>"
        f"<messageExchange name='second'/></messageExchanges>\n<variables>{VARIABLES}{variables}</variables>\n"
        f"<correlationSets>{names}</correlationSets>\n" + "\n".join(inside) + "\n</process>"
    )


def sequence(*steps: str, name: str = "") -> str:
    return f"<sequence{named(name)}>{''.join(steps)}</sequence>"


def named(name: str) -> str:
    return f' name="{name}"' if name else ""


HEARD: Final = {"ask": "question", "tell": "news", "spell": "word"}
SAID: Final = {"ask": "answer", "spell": "spelling"}


def correlations(*sets: str) -> str:
    """`talk yes` initiates talk; `talk yes request` in one direction of a call."""
    if not sets:
        return ""
    found = (each.split() for each in sets)
    return "".join(
        [
            "<correlations>",
            *(
                f'<correlation set="{set}" initiate="{how}"' + "".join(f' pattern="{each}"' for each in rest) + "/>"
                for set, how, *rest in found
            ),
            "</correlations>",
        ]
    )


def receive(operation: str = "ask", *sets: str, creates: bool = False, exchange: str = "", inside: str = "") -> str:
    creating = ' createInstance="yes"' if creates else ""
    exchanging = f' messageExchange="{exchange}"' if exchange else ""
    variable = HEARD[operation]
    return (
        f'<receive partnerLink="desk" operation="{operation}" variable="{variable}"{creating}{exchanging}>'
        f"{inside}{correlations(*sets)}</receive>"
    )


def begin(operation: str = "ask", *sets: str) -> str:
    return receive(operation, *sets, creates=True)


def reply(operation: str = "ask", *sets: str, exchange: str = "", variable: str = "", fault: str = "") -> str:
    exchanging = f' messageExchange="{exchange}"' if exchange else ""
    failing = f' faultName="{fault}"' if fault else ""
    return (
        f'<reply partnerLink="desk" operation="{operation}" variable="{variable or SAID[operation]}"{exchanging}'
        f"{failing}>{correlations(*sets)}</reply>"
    )


def invoke(operation: str = "buy", *sets: str, inside: str = "", name: str = "", attributes: str = "") -> str:
    data = {"buy": 'inputVariable="wish" outputVariable="goods"', "hint": 'inputVariable="hint"', "nudge": ""}
    return (
        f'<invoke{named(name)} partnerLink="shop" operation="{operation}" {data[operation]} {attributes}>'
        f"{correlations(*sets)}{inside}</invoke>"
    )


def copy(what: str, to: str, attributes: str = "") -> str:
    """A copy; what does not begin with `<` is an expression, as is where it goes to."""
    source = what if what.startswith("<") else f"<from>{what}</from>"
    target = to if to.startswith("<") else f"<to>{to}</to>"
    return f"<copy{' ' * bool(attributes)}{attributes}>{source}{target}</copy>"


def assign(*copies: str, attributes: str = "", inside: str = "") -> str:
    return f"<assign {attributes}>{inside}{''.join(copies)}</assign>"


def put(what: str, to: str) -> str:
    """An assign of one copy: `put("1", "answer.out")` fills a part, `put("1", "number")` a variable."""
    variable, _, part = to.partition(".")
    where = f' part="{part}"' if part else ""
    return assign(copy(what, f'<to variable="{variable}"{where}/>'))


def note(what: str, inside: str = "") -> str:
    """Write a letter into the trace."""
    return assign(copy(f"concat($trace, '{what}')", '<to variable="trace"/>'), inside=inside)


def note_value(expression: str) -> str:
    return assign(copy(f"concat($trace, string({expression}))", '<to variable="trace"/>'))


def buy(number: int, *sets: str, inside: str = "", name: str = "") -> str:
    return sequence(put(str(number), "wish.in"), invoke("buy", *sets, inside=inside, name=name))


SPELL: Final = put("$trace", "spelling.out") + reply("spell")
"""Answer what was noted."""


def traced(*steps: str) -> str:
    """A sequence that begins with a word, takes these steps, and spells what they noted."""
    return sequence(begin("spell"), *steps, SPELL)


def scope(*inside: str, name: str = "", attributes: str = "") -> str:
    return f"<scope{named(name)} {attributes}>{''.join(inside)}</scope>"


def handlers(*catches: str, all: str = "") -> str:
    last = f"<catchAll>{all}</catchAll>" if all else ""
    return f"<faultHandlers>{''.join(catches)}{last}</faultHandlers>"


def catch(name: str, body: str, attributes: str = "") -> str:
    asked = f' faultName="{name}"' if name else ""
    return f"<catch{asked} {attributes}>{body}</catch>"


def undoing(body: str) -> str:
    return f"<compensationHandler>{body}</compensationHandler>"


def throw(name: str, variable: str = "") -> str:
    data = f' faultVariable="{variable}"' if variable else ""
    return f'<throw faultName="{name}"{data}/>'


def condition(text: str) -> str:
    return f"<condition>{text}</condition>"


def wait(seconds: float) -> str:
    return f"<wait><for>'PT{seconds}S'</for></wait>"


def flow(*branches: str, links: str = "", attributes: str = "") -> str:
    """Branches side by side; `links` are names with spaces between them."""
    names = "".join(f'<link name="{each}"/>' for each in links.split())
    declared = f"<links>{names}</links>" if names else ""
    return f"<flow {attributes}>{declared}{''.join(branches)}</flow>"


def sources(*links: str) -> str:
    """`one` or `one: condition`."""
    found = (each.partition(":") for each in links)
    return "".join(
        [
            "<sources>",
            *(
                f'<source linkName="{name}">'
                + (f"<transitionCondition>{text}</transitionCondition>" if text else "")
                + "</source>"
                for name, _, text in found
            ),
            "</sources>",
        ]
    )


def targets(*links: str, join: str = "") -> str:
    joined = f"<joinCondition>{join}</joinCondition>" if join else ""
    coming = "".join(f'<target linkName="{each}"/>' for each in links)
    return f"<targets>{joined}{coming}</targets>"


def for_each(body: str, *, start: str = "1", last: str, parallel: bool = False, done: str = "") -> str:
    """A loop whose counter is `n`; its body becomes a scope."""
    return (
        f'<forEach counterName="n" parallel="{"yes" if parallel else "no"}"><startCounterValue>{start}'
        f"</startCounterValue><finalCounterValue>{last}</finalCounterValue>{done}<scope>{body}</scope></forEach>"
    )
