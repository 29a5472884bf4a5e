"""The functions that BPEL adds to XPath: a property of a variable, and a transformation by a style sheet."""

from typing import Final

from mendflow.core.expressions.xpath.evaluation import Evaluation, Focus, XPathError
from mendflow.core.expressions.xpath.functions import MANY, Arguments, Function
from mendflow.core.expressions.xpath.values import XValue, to_string, to_xpath_value
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_value
from mendflow.core.xml import BadXml
from mendflow.core.xml.simple_values import number_text
from mendflow.core.xml.tree import Element, Node
from mendflow.core.xml.writer import write

EXECUTABLE: Final = "http://docs.oasis-open.org/wsbpel/2.0/process/executable"
PROPERTY: Final = "getVariableProperty"
TRANSFORM: Final = "doXslTransform"
WRITTEN_NODE: Final = 10
"""The work of writing a node."""


def _property(focus: Focus, arguments: Arguments) -> XValue:
    ask = focus.run.world.property
    if ask is None:
        raise XPathError(f"{PROPERTY}() means nothing here: there are no messages")
    variable, name = (to_string(each, focus.run) for each in arguments)
    return to_xpath_value(ask(variable, name), f"the property {name:.200} of ${variable:.200}")


def _transform(focus: Focus, arguments: Arguments) -> XValue:
    ask = focus.run.world.transform
    if ask is None:
        raise XPathError(f"{TRANSFORM}() is only possible in the <from> of an assignment; put it there")
    if len(arguments) % 2:
        raise XPathError(f"{TRANSFORM}() takes a style sheet, a source, and pairs of a parameter's name and its value")
    sheet, source, *rest = arguments
    if not isinstance(source, list) or len(source) != 1 or not isinstance(source[0], Element):
        raise XPathError(f"the source of {TRANSFORM}() is not one element", fault="xsltInvalidSource")
    names = [to_string(each, focus.run) for each in rest[::2]]
    params = tuple(zip(names, (value_of(each, focus.run) for each in rest[1::2]), strict=True))
    return to_xpath_value(
        ask(to_string(sheet, focus.run), _written(source[0], focus.run), params), "what the style sheet made"
    )


def value_of(value: XValue, run: Evaluation) -> Value:
    """What XPath gave as a value of the flow: a number is whole where it can be; one node is what it holds, several
    are a list, and none is null."""
    if isinstance(value, list):
        found = [node_value(node, run) for node in value]
        return found[0] if len(found) == 1 else found or None
    if isinstance(value, float) and not isinstance(value, bool):
        return _number(value)
    return value


def _number(value: float) -> Value:
    """JSON has no NaN and no infinity; XPath's words for them stand instead."""
    if value != value or abs(value) == float("inf"):
        return number_text(value)
    return int(value) if value == int(value) and abs(value) < 1 << 53 else value


def node_value(node: Node, run: Evaluation) -> Value:
    return element_value(_written(node, run)) if isinstance(node, Element) else run.string(node)


def _written(element: Element, run: Evaluation) -> str:
    """An element as text. Elements that hold each other are written again and again, which is work."""
    run.spend(WRITTEN_NODE * (1 + sum(1 for _ in element.descendants())))
    try:
        return write(element)
    except BadXml as error:
        raise XPathError(f"the element cannot be kept: {error}") from None


FUNCTIONS: Final[dict[str, Function]] = {
    PROPERTY: Function(_property, "any", 2, 2),
    TRANSFORM: Function(_transform, "any", 2, MANY),
}
