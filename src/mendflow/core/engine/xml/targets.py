"""The target of a copy: a whole variable, a part of one, a node that a query or an expression selects, a partner link.

Whole variables and parts are created by the copy; a selected node must exist exactly once. Trees are parsed, changed
and written back as new values, because the old values may be shared."""

from collections.abc import Iterable
from typing import Final

from mendflow.core.engine.faults import MISMATCHED_ASSIGNMENT, SELECTION_FAILURE, flow_fault
from mendflow.core.engine.state import Case, Env
from mendflow.core.engine.xml.copies import CopiedValue, copy_to_variable, is_copyable, put, root_of, written
from mendflow.core.engine.xml.declarations import link_at, parts_of, type_of_part, variable_at, world_of
from mendflow.core.engine.xml.properties import alias_of
from mendflow.core.engine.xml.xpath_lookup import XPathVariables, fault_of, texts_in
from mendflow.core.expressions import xpath
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlTarget, XmlType, element_text, element_value
from mendflow.core.soap import SERVICE_REF
from mendflow.core.xml.checkout import check_in_unchanged
from mendflow.core.xml.declarations import builtin_of
from mendflow.core.xml.tree import Element, Node
from mendflow.core.xml.writer import write
from mendflow.lazy import lazy_pattern

BARE: Final = lazy_pattern(r"\s*\$([^\W\d][\w-]*)(?:\.([^\W\d][\w.-]*))?\s*")
"""An expression that is a variable, or a part of one, and nothing else."""

REFERENCE: Final = f"{{{SERVICE_REF}}}service-ref"


class MessageValue(dict[str, Value]):
    """A whole message that is copied, and its type."""

    def __init__(self, parts: dict[str, Value], type: str) -> None:
        super().__init__(parts)
        self.type = type


class CopyTargets:
    """Writes for one activity, and undoes what it wrote."""

    def __init__(self, case: Case, env: int) -> None:
        self.case, self.env = case, env
        self._before: dict[tuple[int, str], tuple[bool, Value]] = {}

    def write(self, holder: Env, name: str, value: Value) -> None:
        self.remember(holder, name)
        for text in texts_in(value):
            self.case.meter.write(text)
        holder.variables[name] = value

    def remember(self, holder: Env, name: str) -> None:
        self._before.setdefault((holder.id, name), (name in holder.variables, holder.variables.get(name)))

    def undo(self) -> None:
        for (env, name), (was, value) in self._before.items():
            if was:
                self.case.envs[env].variables[name] = value
            else:
                self.case.envs[env].variables.pop(name, None)

    def written(self) -> list[tuple[Env, str]]:
        """The variables that were written to."""
        return [(self.case.envs[env], name) for env, name in self._before if not name.startswith("@")]

    def put(self, place: XmlTarget, given: CopiedValue | MessageValue, *, keep_name: bool) -> None:
        if place == XmlTarget():
            raise flow_fault(SELECTION_FAILURE, "the copy has no target")
        bare = BARE.fullmatch(place.expression.text) if place.expression is not None else None
        if bare is not None:
            place = XmlTarget(variable=bare.group(1), part=bare.group(2) or "")
        if isinstance(given, MessageValue):
            self._put_message(place, given)
        elif place.partner_link:
            self._put_link(place.partner_link, given)
        elif place.expression is not None:
            self._put_selected(place.expression, given, keep_name=keep_name)
        elif place.property:
            self._put_property(place, given)
        else:
            self._put_variable(place, given, keep_name=keep_name)

    def _put_message(self, place: XmlTarget, given: MessageValue) -> None:
        if not place.variable or place.part or place.query is not None or place.property:
            raise flow_fault(
                MISMATCHED_ASSIGNMENT, f"a whole message {given.type} goes to a variable of that type only"
            )
        holder, type = variable_at(self.case, self.env, place.variable)
        if type.message != given.type:
            held = type.message or type.element or type.type
            raise flow_fault(
                MISMATCHED_ASSIGNMENT, f"{place.variable} is {held}; a message {given.type} cannot go there"
            )
        self.write(holder, place.variable, dict(given))

    def _put_link(self, name: str, given: CopiedValue) -> None:
        holder, _ = link_at(self.case, self.env, name)
        if not isinstance(given, Element) or given.name != REFERENCE:
            raise flow_fault(
                MISMATCHED_ASSIGNMENT, f"the partner link {name} takes a service-ref element and nothing else"
            )
        known = holder.variables.get(f"@{name}") or {}
        self.write(holder, f"@{name}", {**known, "partner": element_value(write(given))})

    def _put_variable(self, place: XmlTarget, given: CopiedValue, *, keep_name: bool) -> None:
        holder, type = self._type(place.variable, place.part)
        if place.query is None:
            before = self._value(holder, place.variable, place.part)
            label = place.part or place.variable
            new = copy_to_variable(world_of(self.case), before, type, label, given, keep_name=keep_name)
            self._keep(holder, place.variable, place.part, new)
        else:
            self._put_queried(place, place.query, given, keep_name=keep_name)

    def _put_queried(self, place: XmlTarget, query: Expr, given: CopiedValue, *, keep_name: bool) -> None:
        holder, type = self._type(place.variable, place.part)
        root = self._tree(holder, type, place.variable, place.part)
        node = self._one(query, XPathVariables(self.case, self.env), root)
        self._put_node(place.variable, place.part, node, given, keep_name=keep_name)

    def _put_property(self, place: XmlTarget, given: CopiedValue) -> None:
        _, type = variable_at(self.case, self.env, place.variable)
        alias = alias_of(world_of(self.case), place.property, type)
        self._put_variable(
            XmlTarget(variable=place.variable, part=alias.part, query=alias.query), given, keep_name=False
        )

    def _put_selected(self, expr: Expr, given: CopiedValue, *, keep_name: bool) -> None:
        """The node stands in one of the variables that the expression names: each is shown as a tree of its own."""
        asking = XPathVariables(self.case, self.env)
        trees: dict[int, tuple[str, str]] = {}
        for name in sorted(xpath.names(expr)):
            holder, type = variable_at(self.case, self.env, name)
            parts = parts_of(self.case, type.message) if type.message else ()
            shown = {part.name: self._displayed(holder, name, part.name) for part in parts}
            if not type.message:
                shown = {"": self._displayed(holder, name, "")}
            asking.trees[name] = shown if type.message else shown[""]
            trees.update({id(tree.document): (name, part) for part, tree in shown.items() if isinstance(tree, Element)})
        node = self._one(expr, asking, None)
        if id(node.document) not in trees:
            raise flow_fault(SELECTION_FAILURE, f"`{expr.text:.200}` selects nothing that stands in a variable")
        variable, part = trees.pop(id(node.document))
        self._give_back(asking, trees.values())
        self._put_node(variable, part, node, given, keep_name=keep_name)

    def _give_back(self, asking: XPathVariables, others: Iterable[tuple[str, str]]) -> None:
        """Trees in which nothing changes need not be read again."""
        for name, part in others:
            shown = asking.trees[name]
            tree = shown[part] if isinstance(shown, dict) else shown
            text = element_text(self._value(variable_at(self.case, self.env, name)[0], name, part))
            if text is not None and isinstance(tree, Element):
                check_in_unchanged(text, tree)

    def _put_node(self, variable: str, part: str, node: Node, given: CopiedValue, *, keep_name: bool) -> None:
        """Copy to a node in the tree of a variable or a part, and keep that tree."""
        holder, type = self._type(variable, part)
        simple = not type.element and builtin_of(world_of(self.case), type) is not None
        if simple or (isinstance(node, Element) and not isinstance(node.parent, Element)):
            self._put_variable(XmlTarget(variable=variable, part=part), given, keep_name=keep_name)
            return
        self._keep(holder, variable, part, element_value(written(put(node, given, keep_name=keep_name))))

    def _displayed(self, holder: Env, name: str, part: str) -> Value | Element:
        _, type = self._type(name, part)
        if not type.element and builtin_of(world_of(self.case), type) is not None:
            value = self._value(holder, name, part)
            return "" if value is None else value
        return self._tree(holder, type, name, part)

    def _one(self, expr: Expr, asking: XPathVariables, context: Node | None) -> Node:
        try:
            found = xpath.select(expr, asking.world, context)
        except xpath.XPathError as error:
            raise fault_of(error, expr) from None
        if len(found) != 1:
            raise flow_fault(
                SELECTION_FAILURE, f"`{expr.text:.200}` selects {len(found)} nodes to copy to; it must be one"
            )
        if not is_copyable(found[0]):
            raise flow_fault(SELECTION_FAILURE, f"`{expr.text:.200}` selects no element, no attribute and no text")
        return found[0]

    def _tree(self, holder: Env, type: XmlType, name: str, part: str) -> Element:
        return root_of(self._value(holder, name, part), type, part or name)

    def _type(self, name: str, part: str) -> tuple[Env, XmlType]:
        holder, type = variable_at(self.case, self.env, name)
        if not type.message:
            if part:
                raise flow_fault(SELECTION_FAILURE, f"the variable {name} is no message, so it has no part {part}")
            return holder, type
        if not part:
            raise flow_fault(
                MISMATCHED_ASSIGNMENT, f"the variable {name} is a message; only a whole message goes there"
            )
        for each in parts_of(self.case, type.message):
            if each.name == part:
                return holder, type_of_part(each)
        raise flow_fault(SELECTION_FAILURE, f"the variable {name} has no part {part}")

    def _value(self, holder: Env, name: str, part: str) -> Value:
        value = holder.variables.get(name)
        return (value or {}).get(part) if part else value

    def _keep(self, holder: Env, name: str, part: str, value: Value) -> None:
        whole = {**(holder.variables.get(name) or {}), part: value} if part else value
        self.write(holder, name, whole)
