"""Writes what YAWL's rule files cannot express as processing instructions.

Other tools skip those. An instruction about a part of a rule is valid only while that part is unchanged: after a change
by another tool, that tool's version counts."""

import hashlib
import json
from typing import Final, TypeVar

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.rules import Rule, RuleSet
from mendflow.core.model.values import Value
from mendflow.formats.xml.markup import MarkupElement, MarkupInstruction, serialize, strip_blanks

T = TypeVar("T", bound=msgspec.Struct)
TARGET: Final = "mendflow"
CHECKED_FIELDS: Final = {
    "condition": "condition",
    "exlet": "conclusion",
    "cornerstone": "cornerstone",
    "note": "description",
}
"""Fields of a rule, and the parts of theirs that they are bound to."""

UNCHECKED_FIELDS: Final = ("author", "at", "passive", "kept")
SET_FIELDS: Final = ("name", "version", "author", "at", "note", "kept", "flow_versions", "renamed")


def rule_extension(rule: Rule, read: Rule, node: MarkupElement) -> MarkupInstruction | None:
    """What reading the node would not tell of the rule."""
    extension: dict[str, Value] = {
        name: getattr(rule, name) for name in UNCHECKED_FIELDS if getattr(rule, name) != getattr(read, name)
    }
    for name, tag in CHECKED_FIELDS.items():
        if getattr(rule, name) != getattr(read, name):
            extension[name] = {"for": part_summary(node, tag), "is": getattr(rule, name)}
    return extension_instruction(extension) if extension else None


def set_extension(rule_set: RuleSet, read: RuleSet) -> MarkupInstruction | None:
    extension: dict[str, Value] = {
        name: getattr(rule_set, name) for name in SET_FIELDS if getattr(rule_set, name) != getattr(read, name)
    }
    flows = {name: flow for name, flow in rule_set.exlets.items() if read.exlets.get(name) != flow}
    if flows:
        extension["exlets"] = msgspec.to_builtins(flows)
    return extension_instruction(extension) if extension else None


def extension_instruction(extension: dict[str, Value]) -> MarkupInstruction:
    # `?>` would end it.
    return MarkupInstruction(TARGET, json.dumps(extension, sort_keys=True).replace(">", "\\u003e"))


def extensions_in(node: MarkupElement) -> dict[str, Value]:
    for child in node.children:
        if isinstance(child, MarkupInstruction) and child.target == TARGET:
            try:
                found = json.loads(child.text)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    return {}


def extend_rule(rule: Rule, node: MarkupElement) -> Rule:
    extension = extensions_in(node)
    change: dict[str, Value] = {name: extension[name] for name in UNCHECKED_FIELDS if name in extension}
    for name, tag in CHECKED_FIELDS.items():
        bound = extension.get(name)
        if isinstance(bound, dict) and bound.get("for") == part_summary(node, tag):
            change[name] = bound.get("is")
    return with_fields(rule, Rule, change)


def extend_set(rule_set: RuleSet, root: MarkupElement) -> RuleSet:
    """The set with what was said of it, and without exlets that no rule concludes and nobody spoke of."""
    extension = extensions_in(root)
    whole = with_fields(rule_set, RuleSet, {name: extension[name] for name in SET_FIELDS if name in extension})
    used = {rule.exlet for trees in whole.trees.values() for tree in trees.values() for rule in tree.rules.values()}
    exlets = {name: flow for name, flow in whole.exlets.items() if name in used}
    try:
        exlets.update(msgspec.convert(extension.get("exlets", {}), dict[str, Flow]))
    except msgspec.ValidationError:
        pass
    return msgspec.structs.replace(whole, exlets=exlets)


def with_fields(struct: T, kind: type[T], change: dict[str, Value]) -> T:
    """The struct with these fields changed, if they can be; a stranger may have written them."""
    if not change:
        return struct
    try:
        checked = msgspec.convert({**msgspec.to_builtins(struct), **change}, kind, strict=False)
    except msgspec.ValidationError:
        return struct
    return msgspec.structs.replace(struct, **{name: getattr(checked, name) for name in change})


def part_summary(node: MarkupElement, tag: str) -> str:
    """What a part says, in short."""
    part = node.child(tag)
    text = serialize(strip_blanks(part)) if part is not None else ""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
