"""A small world of messages for conversations with a case: questions that are answered, news that are not.

Every message has an `id`, which is the property `{urn:t}id` of each, and a `text`. `deep` has them in an element."""

from mendflow.core.engine.messages import SendReply
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import Activity, Flow, JobActivity, OnMessage, Receive, Reply, Scope, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import Value
from mendflow.core.model.xml import (
    Correlation,
    Initiate,
    MessagePart,
    Operation,
    PartnerLink,
    PropertyAlias,
    ScopeDeclarations,
    ServicePort,
    XmlCopy,
    XmlDefinitions,
    XmlMessage,
    XmlSource,
    XmlTarget,
    XmlType,
    element_value,
)
from tests.core.engine.world import Play

XSD = "http://www.w3.org/2001/XMLSchema"
ID = "{urn:t}id"
QUESTION, ANSWER, NEWS, DEEP, SORRY = (f"{{urn:t}}{name}" for name in ("question", "answer", "news", "deep", "sorry"))
PORT = "{urn:t}Port"
LINK = PartnerLink(type="{urn:t}Link", mine=PORT, my_role="me")
PLAIN = (MessagePart(name="id", type=f"{{{XSD}}}int"), MessagePart(name="text", type=f"{{{XSD}}}string"))
QUERY = Expr("t:head/@id", language=XPATH, namespaces=(("t", "urn:t"),))
WORLD = XmlDefinitions(
    namespace="urn:p",
    messages={
        QUESTION: PLAIN,
        ANSWER: PLAIN,
        NEWS: PLAIN,
        SORRY: PLAIN,
        DEEP: (MessagePart(name="body", element="{urn:t}body"),),
    },
    port_types={
        PORT: {
            "ask": Operation(name="ask", input=QUESTION, output=ANSWER, faults={"sorry": SORRY}),
            "begin": Operation(name="begin", input=QUESTION, output=ANSWER),
            "tell": Operation(name="tell", input=NEWS),
            "tellDeep": Operation(name="tellDeep", input=DEEP),
        }
    },
    properties={ID: f"{{{XSD}}}int"},
    ports=(ServicePort(service="{urn:t}S", name="P", port_type=PORT, address="http://127.0.0.1:1/partner"),),
    aliases=(
        *(PropertyAlias(property=ID, of=XmlType(message=each), part="id") for each in (QUESTION, ANSWER, NEWS, SORRY)),
        PropertyAlias(property=ID, of=XmlType(message=DEEP), part="body", query=QUERY),
    ),
)
TYPES = {
    "question": XmlType(message=QUESTION),
    "other": XmlType(message=QUESTION),
    "answer": XmlType(message=ANSWER),
    "news": XmlType(message=NEWS),
    "deep": XmlType(message=DEEP),
    "sorry": XmlType(message=SORRY),
}


def put(variable: str, part: str, text: str) -> XmlCopy:
    """A copy of an expression's value to a part of a variable."""
    source = XmlSource(expression=Expr(text, language=XPATH))
    return XmlCopy(source=source, target=XmlTarget(variable=variable, part=part))


ANSWERS = tuple(
    put(name, part, text) for name in ("answer", "sorry") for part, text in (("id", "1"), ("text", "'yes'"))
)
SETS: dict[str, tuple[str, ...]] = {"talk": (ID,), "aside": (ID,)}
HEARS = {"ask": "question", "begin": "question", "tell": "news", "tellDeep": "deep"}


def said(id: int, text: str = "") -> dict[str, Value]:
    return {"id": id, "text": text}


def deep(id: int) -> dict[str, Value]:
    return {"body": element_value(f'<t:body xmlns:t="urn:t"><t:head id=" {id} "/></t:body>')}


def sets(**initiate: Initiate) -> tuple[Correlation, ...]:
    return tuple(Correlation(set=name, initiate=how) for name, how in initiate.items())


def message(operation: str, variable: str = "", *, creates: bool = False, **initiate: Initiate) -> XmlMessage:
    return XmlMessage(
        partner_link="link", operation=operation, variable=variable, correlations=sets(**initiate), creates=creates
    )


def receive(
    name: str, operation: str, variable: str = "", *, exchange: str = "", creates: bool = False, **initiate: Initiate
) -> Receive:
    heard = message(operation, variable or HEARS[operation], creates=creates, **initiate)
    return Receive(name=name, channel=f"link.{operation}", exchange=exchange, xml=heard)


def reply(name: str, operation: str = "ask", *, exchange: str = "", fault: str = "", **initiate: Initiate) -> Reply:
    """Says yes, in the conversation 1, unless an assign made it say something else."""
    made = message(operation, "sorry" if fault else "answer", creates=False, **initiate)
    return Reply(name=name, channel=f"link.{operation}", exchange=exchange, fault=fault, xml=made)


def on_message(
    operation: str,
    body: Activity,
    *,
    exchange: str = "",
    declared: ScopeDeclarations | None = None,
    variable: str = "",
    creates: bool = False,
    **initiate: Initiate,
) -> OnMessage:
    heard = message(operation, variable or HEARS[operation], creates=creates, **initiate)
    return OnMessage(
        channel=f"link.{operation}", body=body, variable="", exchange=exchange, xml=heard, declared=declared
    )


def sequence(name: str, *steps: Activity) -> Sequence:
    return Sequence(name=name, body=steps)


def step(name: str) -> JobActivity:
    return JobActivity(name=name, command="x")


def process(
    body: Activity, *, exchanges: tuple[str, ...] = (), scope: Scope | None = None, calls: bool = False
) -> Flow:
    """A process around the body; `scope` has its handlers. With `calls` it has a partner to call."""
    links = {"link": LINK} | ({"partner": PartnerLink(type="{urn:t}Link", partner=PORT)} if calls else {})
    declared = ScopeDeclarations(
        types=TYPES, partner_links=links, correlation_sets=SETS, exchanges=exchanges, first=ANSWERS
    )
    around = scope or Scope(name="process", body=body)
    whole = Scope(
        name="process",
        body=body,
        declared=declared,
        catches=around.catches,
        messages=around.messages,
        alarms=around.alarms,
    )
    return Flow(name=FlowName("talks"), body=whole, xml=WORLD)


def talking(body: Activity, *, exchanges: tuple[str, ...] = (), scope: Scope | None = None) -> Play:
    """A case of such a process, just started."""
    return Play(process(body, exchanges=exchanges, scope=scope))


def fault_of(play: Play) -> str:
    assert play.ended.fault is not None, play.ended
    return play.ended.fault.name


def answered(play: Play) -> list[str]:
    """The messages that were answered, in that order."""
    return [order.message for order in play.given if isinstance(order, SendReply)]
