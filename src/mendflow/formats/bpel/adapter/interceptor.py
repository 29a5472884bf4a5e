"""The interceptor that replaces an invoke, in standard BPEL.

It is a scope. It draws a key for the call from the proxy, so that an engine that repeats a request calls no partner
twice; builds a message to the proxy from the invoke's input and endpoint, and has the proxy begin the call; asks until
the call is over, with a wait of its own in between, so that no line is held; and copies the answer to the variables
that the invoke would have filled. A fault that the partner declares comes back as a fault of the proxy, and is thrown
again under its own name with its data. Undeclared faults pass the proxy unchanged, so that an engine names them as
before. The variables and the partner link are local to the scope: nothing else sees them, and isolated scopes that call
different partners do not wait for each other."""

from collections.abc import Sequence
from typing import Final

from lxml import etree

from mendflow.core.model.xml import MessagePart
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.adapter.calls import DeclaredFault, InterceptedCall, PartVariable
from mendflow.formats.bpel.adapter.unique_names import PrefixScope, UniqueNames
from mendflow.formats.bpel.names import own_elements
from mendflow.formats.bpel.ports import PORTS
from mendflow.formats.bpel.reader import split_name
from mendflow.formats.bpel.vocabulary import BPEL, SERVICE_REF, XPATH_1_0

PROXY: Final = PORTS["proxy"]
KEEP_ELEMENT_NAME: Final = {"keepSrcElementName": "yes"}


class Interceptor:
    """Makes the scope for one call."""

    def __init__(self, call: InterceptedCall, fresh: UniqueNames, language: str, number: int) -> None:
        self._call = call
        self._prefixes = PrefixScope(call.at)
        self._proxy = self._prefixes.of(PROXY, "mendflow")
        self._name = f"{fresh.name('mendflowScope')}{number}"
        self._link = fresh.name("mendflowProxy")
        self._open = fresh.name("mendflowOpen")
        self._key = fresh.name("mendflowKey")
        self._request = fresh.name("mendflowCall")
        self._progress = fresh.name("mendflowProgress")
        self._asked = fresh.name("mendflowAsk")
        self._wanted = fresh.name("mendflowResult")
        self._answer = fresh.name("mendflowAnswer")
        self._failure = fresh.name("mendflowFailure")
        self._fault = fresh.name("mendflowFault")
        self._language = {} if language == XPATH_1_0 else {"expressionLanguage": XPATH_1_0}

    def scope(self) -> ParsedElement:
        parts = [self._partner_links(), self._variables()]
        if self._call.faults:
            parts.append(_new_element("faultHandlers", self._catch()))
        steps = [
            _new_element("assign", self._empty_message(self._open, "open")),
            self._invoke("open", self._open, self._key),
            self._wrap(),
            self._invoke("begin", self._request, self._progress, self._correlations("request")),
            self._refer_to_call(),
            self._ask_until_over(),
            self._invoke("result", self._wanted, self._answer, self._correlations("response")),
        ]
        steps += [self._unwrap()] if self._call.gets else []
        prefixes = {**declared_prefixes(self._call.at), **self._prefixes.declared}
        made = etree.Element(_bpel("scope"), {"name": self._name}, nsmap=prefixes)
        made.extend([*parts, _new_element("sequence", *steps)])
        return made

    # declarations

    def _partner_links(self) -> ParsedElement:
        link = _new_element(
            "partnerLink", name=self._link, partnerLinkType=f"{self._proxy}:ProxyLink", partnerRole="proxy"
        )
        return _new_element("partnerLinks", link)

    def _variables(self) -> ParsedElement:
        messages = {
            self._open: "openRequest",
            self._key: "openResponse",
            self._request: "beginRequest",
            self._progress: "progress",
            self._asked: "askRequest",
            self._wanted: "resultRequest",
            self._answer: "callResponse",
        }
        names = {name: f"{self._proxy}:{message}" for name, message in messages.items()}
        for number, fault in enumerate(self._call.faults, 1):
            names[f"{self._fault}{number}"] = self._prefixes.written(fault.message)
        made = (_new_element("variable", name=name, messageType=message) for name, message in names.items())
        return _new_element("variables", *made)

    # there

    def _wrap(self) -> ParsedElement:
        request = f"${self._request}.parameters"
        service_ref = f"{self._prefixes.of(SERVICE_REF, 'sref')}:service-ref"
        copies = [
            _new_element(
                "copy", _new_element("from", _new_element("literal", self._envelope())), self._whole(self._request)
            ),
            self._text_copy(f"{self._inner(self._key)}:key", f"{request}/{self._proxy}:key"),
            *(self._sent(request, held) for held in self._call.sends),
            _new_element(
                "copy",
                _new_element("from", partnerLink=self._call.link, endpointReference="partnerRole"),
                self._expression("to", f"{request}/{self._proxy}:address/{service_ref}"),
            ),
        ]
        return _new_element("assign", *copies)

    def _whole(self, variable: str) -> ParsedElement:
        return _new_element("to", variable=variable, part="parameters")

    def _sent(self, request: str, held: PartVariable) -> ParsedElement:
        place = f"{request}/{self._proxy}:message/{self._proxy}:part[@name='{held.part.name}']/*"
        source = {"variable": held.variable} | ({} if held.whole else {"part": held.part.name})
        keep = KEEP_ELEMENT_NAME if held.element and held.part.element else {}
        return _new_element("copy", _new_element("from", **source), self._expression("to", place), **keep)

    def _envelope(self) -> ParsedElement:
        """The call, with an empty element wherever something is put into it."""
        call, operation = self._call, self._call.operation
        made = etree.Element(f"{{{PROXY}}}begin", nsmap={self._proxy: PROXY, "sref": SERVICE_REF})
        if not operation.output:
            made.set("oneWay", "true")
        _add_text(made, "key")
        _add_text(made, "activity", call.activity)
        address = _add_text(made, "address", call.address)
        etree.SubElement(address, f"{{{SERVICE_REF}}}service-ref")
        _add_text(made, "action", call.bound.action)
        _add_text(made, "portType", call.port_type)
        _add_text(made, "operation", operation.name)
        _add_text(made, "style", call.bound.style)
        if call.bound.namespace:
            _add_text(made, "namespace", call.bound.namespace)
        for part in call.answer:
            _add_text(made, "answer", name=part.name, **_kind(part))
        for fault in call.faults:
            for part in fault.parts[:1]:
                _add_text(made, "fault", name=split_name(fault.name)[1], part=part.name, **_kind(part))
        message = _add_text(made, "message")
        for held in call.sends:
            self._placeholder(_add_text(message, "part", name=held.part.name), held.part)
        return made

    def _placeholder(self, into: ParsedElement, part: MessagePart) -> None:
        """The copy brings the name of an element along, so that one without a namespace needs no place of its own."""
        space = split_name(part.element)[0] if part.element else ""
        if space:
            etree.SubElement(into, part.element, nsmap={None: space})
        else:
            _add_text(into, "value")

    # the requests

    def _invoke(
        self, operation: str, given: str, got: str, correlations: Sequence[ParsedElement] = ()
    ) -> ParsedElement:
        """The invoke that begins the call has the name of the one that is intercepted."""
        name = self._call.at.get("name", "").strip()
        return _new_element(
            "invoke",
            *([_new_element("correlations", *correlations)] if correlations else []),
            **({"name": name if operation == "begin" else f"{name}.{operation}"} if name else {}),
            partnerLink=self._link,
            portType=f"{self._proxy}:Proxy",
            operation=operation,
            inputVariable=given,
            outputVariable=got,
        )

    def _correlations(self, way: str) -> list[ParsedElement]:
        """The correlations of the request, or those of the response: the two go by different invokes. A set that the
        request has initiated is there when the response comes."""
        found = []
        for enclosing in own_elements(self._call.at, "correlations"):
            for each in own_elements(enclosing, "correlation"):
                pattern = each.get("pattern", "").strip() or "request"
                if way not in pattern.split("-"):
                    continue
                made = _new_element("correlation", **{**dict(each.attrib), "pattern": way})
                if way != pattern and way == "response":
                    made.set("initiate", "no")
                found.append(made)
        return found

    def _refer_to_call(self) -> ParsedElement:
        """The messages that ask about the call and for its result."""
        copies = []
        for variable, tag in ((self._asked, "ask"), (self._wanted, "result")):
            to = f"{self._inner(variable)}:callId"
            copies += [
                self._empty_message(variable, tag, "callId"),
                self._text_copy(f"{self._inner(self._progress)}:callId", to),
            ]
        return _new_element("assign", *copies)

    def _ask_until_over(self) -> ParsedElement:
        wait = _new_element("wait", self._expression("for", f"string({self._inner(self._progress)}:askAfter)"))
        return _new_element(
            "while",
            self._expression("condition", f"{self._inner(self._progress)}:over = 'false'"),
            _new_element("sequence", wait, self._invoke("ask", self._asked, self._progress)),
        )

    def _empty_message(self, variable: str, tag: str, child: str = "") -> ParsedElement:
        made = etree.Element(f"{{{PROXY}}}{tag}", nsmap={self._proxy: PROXY})
        if child:
            _add_text(made, child)
        return _new_element("copy", _new_element("from", _new_element("literal", made)), self._whole(variable))

    def _text_copy(self, source: str, target: str) -> ParsedElement:
        return _new_element("copy", self._expression("from", source), self._expression("to", target))

    def _inner(self, variable: str) -> str:
        """The path to the children of a message to or from the proxy, up to their local name."""
        return f"${variable}.parameters/{self._proxy}"

    # and back

    def _unwrap(self) -> ParsedElement:
        answer = f"${self._answer}.parameters/{self._proxy}:message"
        return _new_element("assign", *(self._taken(answer, held) for held in self._call.gets))

    def _taken(self, answer: str, held: PartVariable) -> ParsedElement:
        target = {"variable": held.variable} | ({} if held.whole else {"part": held.part.name})
        keep = KEEP_ELEMENT_NAME if held.element and held.part.element else {}
        return _new_element(
            "copy", self._expression("from", self._inside(answer, held.part)), _new_element("to", **target), **keep
        )

    def _inside(self, message: str, part: MessagePart) -> str:
        content = "*" if part.element else f"{self._proxy}:value"
        return f"{message}/{self._proxy}:part[@name='{part.name}']/{content}"

    def _catch(self) -> ParsedElement:
        """Each declared fault is thrown under its own name; what is none of them goes on as it came."""
        first, *others = (self._thrown(number, fault) for number, fault in enumerate(self._call.faults, 1))
        choice = _new_element(
            "if",
            *first,
            *(_new_element("elseif", *each) for each in others),
            _new_element("else", _new_element("rethrow")),
        )
        return _new_element(
            "catch",
            choice,
            faultName=f"{self._proxy}:failed",
            faultVariable=self._failure,
            faultMessageType=f"{self._proxy}:failedFault",
        )

    def _thrown(self, number: int, fault: DeclaredFault) -> tuple[ParsedElement, ParsedElement]:
        failed, variable = f"${self._failure}.fault", f"{self._fault}{number}"
        throw = _new_element("throw", faultName=self._prefixes.written(fault.name), faultVariable=variable)
        copies = [
            _new_element(
                "copy",
                self._expression("from", self._inside(failed, part)),
                _new_element("to", variable=variable, part=part.name),
                **(KEEP_ELEMENT_NAME if part.element else {}),
            )
            for part in fault.parts
        ]
        if not copies:
            del throw.attrib["faultVariable"]
        steps = ([_new_element("assign", *copies)] if copies else []) + [throw]
        condition = self._expression("condition", f"{failed}/{self._proxy}:name = {_string(fault.name)}")
        return condition, _new_element("sequence", *steps)

    def _expression(self, tag: str, text: str) -> ParsedElement:
        made = _new_element(tag, **self._language)
        made.text = text
        return made


def _string(text: str) -> str:
    """A text in XPath; an address may hold one kind of quotation marks."""
    return f"'{text}'" if "'" not in text else f'"{text}"'


def _bpel(tag: str) -> str:
    return f"{{{BPEL}}}{tag}"


def declared_prefixes(at: ParsedElement) -> dict[str | None, str]:
    """The prefixes that an element itself declares, since they go with it; and the one that BPEL has there."""
    parent = at.getparent()
    outside = parent.nsmap if parent is not None else {}
    return {prefix: uri for prefix, uri in at.nsmap.items() if outside.get(prefix) != uri} | {at.prefix: BPEL}


def _new_element(tag: str, *children: ParsedElement, **attributes: str) -> ParsedElement:
    made = etree.Element(_bpel(tag), attributes)
    made.extend(children)
    return made


def _add_text(into: ParsedElement, tag: str, text: str = "", **attributes: str) -> ParsedElement:
    made = etree.SubElement(into, f"{{{PROXY}}}{tag}", attributes)
    made.text = text or None
    return made


def _kind(part: MessagePart) -> dict[str, str]:
    return {"element": part.element} if part.element else {"type": part.type}
