"""The source of a copy: a variable or a part of it, a property, a partner link, an expression, a literal."""

from mendflow.core.engine.faults import (
    SELECTION_FAILURE,
    SUB_LANGUAGE_FAULT,
    UNINITIALIZED_PARTNER_ROLE,
    UNINITIALIZED_VARIABLE,
    flow_fault,
)
from mendflow.core.engine.state import Case
from mendflow.core.engine.xml.copies import CopiedValue, copied_value, is_copyable, parse_readable, root_of
from mendflow.core.engine.xml.declarations import link_at, partner_at, variable_at
from mendflow.core.engine.xml.parts import part_value, variable_value, whole_message
from mendflow.core.engine.xml.targets import MessageValue
from mendflow.core.engine.xml.xpath_lookup import XPathVariables, fault_of
from mendflow.core.expressions import ExpressionError, evaluate, xpath
from mendflow.core.expressions.xpath.evaluation import StyleSheetRunner
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlSource, XmlType, element_text
from mendflow.core.xml.tree import Element, Node, Text


class CopySources:
    """Reads for one activity."""

    def __init__(self, case: Case, env: int, transform: StyleSheetRunner | None = None) -> None:
        self.case, self.env = case, env
        self.asking = XPathVariables(case, env)
        self.asking.transform = transform

    def read(self, source: XmlSource, *, ignore_missing: bool = False) -> CopiedValue | MessageValue | None:
        """The value to copy; None if there is nothing, and that is permitted."""
        if source.expression is not None:
            return self._query(source.expression, None, ignore_missing=ignore_missing)
        if source.literal is not None:
            return literal(source.literal)
        if source.partner_link:
            return self._reference(source.partner_link, source.endpoint)
        if source.variable:
            return self._variable(source, ignore_missing=ignore_missing)
        if ignore_missing:
            return None
        raise flow_fault(SELECTION_FAILURE, "the copy has no source")

    def _variable(self, source: XmlSource, *, ignore_missing: bool) -> CopiedValue | MessageValue | None:
        name = source.variable
        _, type = variable_at(self.case, self.env, name)
        if source.property:
            return copied_value(self.asking.property_of(name, source.property))
        if type.message and not source.part:
            return MessageValue(whole_message(self.case, self.env, name, type.message), type.message)
        value = (
            part_value(self.case, self.env, name, source.part)
            if source.part
            else variable_value(self.case, self.env, name)
        )
        if source.query is None:
            return copied_value(value)
        return self._query(source.query, _context(value, source.part or name), ignore_missing=ignore_missing)

    def _query(self, expr: Expr, context: Node | None, *, ignore_missing: bool) -> CopiedValue | None:
        if expr.language != XPATH:
            return self._evaluate(expr)
        try:
            found = xpath.evaluate(expr, self.asking.world, context)
        except xpath.XPathError as error:
            raise fault_of(error, expr) from None
        if not isinstance(found, list):
            return found
        if not found and ignore_missing:
            return None
        if len(found) != 1:
            raise flow_fault(
                SELECTION_FAILURE, f"`{expr.text:.200}` selects {len(found)} nodes to copy; it must be one"
            )
        if not is_copyable(found[0]):
            raise flow_fault(SELECTION_FAILURE, f"`{expr.text:.200}` selects no element, no attribute and no text")
        return found[0]

    def _evaluate(self, expr: Expr) -> CopiedValue:
        """What an expression in another language gives."""
        try:
            value = evaluate(expr, self.asking.names)
        except ExpressionError as error:
            missing = self.asking.names.missing
            raise flow_fault(UNINITIALIZED_VARIABLE if missing else SUB_LANGUAGE_FAULT, str(error)) from None
        if element_text(value) is None and not isinstance(value, (str, int, float)):
            raise flow_fault(SELECTION_FAILURE, f"`{expr.text:.200}` gives neither a plain value nor an element")
        return copied_value(value)

    def _reference(self, name: str, endpoint: str) -> CopiedValue:
        if endpoint != "myRole":
            return copied_value(partner_at(self.case, self.env, name))
        holder, _ = link_at(self.case, self.env, name)
        reference: Value = (holder.variables.get(f"@{name}") or {}).get("mine")
        if reference is None:
            raise flow_fault(UNINITIALIZED_PARTNER_ROLE, f"the flow has no role of its own on the partner link {name}")
        return copied_value(reference)


def _context(value: Value, label: str) -> Element:
    """The tree that a query looks at."""
    text = element_text(value)
    return root_of(value, XmlType(), label) if text is None else parse_readable(text)


def literal(text: str) -> CopiedValue:
    """What a literal is: its one element, or its text."""
    root = parse_readable(text)
    elements = list(root.elements())
    texts = "".join(node.value for node in root.children if type(node) is Text)
    if not elements:
        return texts
    if len(elements) > 1 or texts.strip():
        raise flow_fault(SELECTION_FAILURE, "a literal is one element, or a text, and nothing besides it")
    return elements[0]
