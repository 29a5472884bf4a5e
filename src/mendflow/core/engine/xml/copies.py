"""How a copy replaces its target, by the rules of WS-BPEL 2.0 (8.4.2).

There are elements, attributes and texts; a plain value is a text. An element copied to an element replaces it, and
takes the target's name unless it keeps its own. In every other combination the text is copied, and replaces the content
of the target. Sources are copied, never moved; shared trees are not changed."""

from typing import Final

from mendflow.core.engine.faults import MISMATCHED_ASSIGNMENT, SELECTION_FAILURE, flow_fault
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlDefinitions, XmlType, element_text, element_value
from mendflow.core.xml.checkout import check_in, check_out
from mendflow.core.xml.declarations import builtin_of, may_stand_for
from mendflow.core.xml.parser import BadXml
from mendflow.core.xml.reader import read_shared
from mendflow.core.xml.simple_values import plain_value, text_of
from mendflow.core.xml.tree import Attribute, Element, Node, Text, cut, in_own_document, replace
from mendflow.core.xml.writer import copy_element

XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
NIL: Final = f"{{{XSI}}}nil"
TRUE: Final = frozenset({"true", "1"})

CopiedValue = Node | str | int | float | bool
"""What is copied: a node of some tree, or a plain value."""


def copied_value(value: Value) -> CopiedValue:
    """What a variable's value, or a part's, is to a copy."""
    text = element_text(value)
    if text is not None:
        return parse_readable(text)
    assert isinstance(value, (str, int, float)), "what is in a variable was looked at when it came in"
    return value


def parse_readable(text: str) -> Element:
    """The tree of a text, for those who only look."""
    try:
        return read_shared(text)
    except BadXml as refusal:
        raise flow_fault(SELECTION_FAILURE, f"what is to be copied cannot be read: {refusal}") from None


def is_copyable(node: Node) -> bool:
    """Whether a copy may take it or go to it: it is an element, an attribute or a text."""
    return isinstance(node, (Element, Attribute)) or type(node) is Text


def element_named(name: str) -> Element:
    """An empty element of that name, in a document of its own."""
    ns, _, local = name[1:].rpartition("}") if name.startswith("{") else ("", "", name)
    return in_own_document(Element(ns, local))


def copy_to_variable(
    world: XmlDefinitions, before: Value, type: XmlType, label: str, given: CopiedValue, *, keep_name: bool
) -> Value:
    """The value of a whole variable, or of a part, when `given` was copied to it. `before` is None where it had none;
    `label` names the element of a complex type."""
    if not type.element and builtin_of(world, type) is not None:
        return plain_value(world, type, content_of(given))
    root = root_of(before, type, label)
    if keep_name and isinstance(given, Element) and not _fits(world, given, type):
        raise flow_fault(MISMATCHED_ASSIGNMENT, f"{given.name} cannot be where {type.element} is declared")
    return element_value(written(put(root, given, keep_name=keep_name)))


def _fits(world: XmlDefinitions, given: Element, type: XmlType) -> bool:
    return not type.element or may_stand_for(world, given.name, type.element)


def root_of(before: Value, type: XmlType, label: str) -> Element:
    """The tree of a value, to be changed; an empty one of the declared name if there is none yet."""
    text = element_text(before)
    if text is not None:
        return check_out(text)
    root = element_named(type.element or label)
    if before is not None:
        root.set_text(text_of(before))
    return root


def put(target: Node, given: CopiedValue, *, keep_name: bool = False) -> Element:
    """Replace the target, or its content. Returns the root of its tree."""
    document = target.document
    assert document is not None, "a target stands in a tree"
    if isinstance(target, Element) and isinstance(given, Element):
        _replace_element(target, given, keep_name=keep_name)
    else:
        _replace_content(target, content_of(given))
    return document.root


def _replace_element(target: Element, given: Element, *, keep_name: bool) -> None:
    new = copy_element(given)
    cut(new)
    if not keep_name:
        new.ns, new.local, new.prefix = target.ns, target.local, target.prefix
    replace(target, new)


def _replace_content(target: Node, text: str) -> None:
    if isinstance(target, Element):
        target.set_text(text)
        if target.get(NIL) in TRUE:
            target.set(XSI, "nil", "false")
    elif isinstance(target, Attribute) or (type(target) is Text and text):
        assert target.parent is not None
        target.parent.own()
        target.value = text
    else:
        assert isinstance(target, Text), "a copy goes to what is copyable"
        cut(target)


def content_of(given: CopiedValue) -> str:
    """The text of what is copied."""
    if isinstance(given, Element) and given.get(NIL) in TRUE:
        raise flow_fault(SELECTION_FAILURE, f"{given.name} is nil, so it has no text to copy")
    if isinstance(given, Node):
        return given.string()
    return text_of(given)


def written(root: Element) -> str:
    try:
        return check_in(root)
    except BadXml as problem:
        raise flow_fault(SELECTION_FAILURE, f"what is copied cannot be kept: {problem}") from None
