"""What YAWL's rule files have no words for, written into them all the same, as processing instructions.

Others skip those. What is said of a part of a rule holds only as long as that part is what it was then: whoever changes
a condition with another tool has changed the rule."""

import hashlib
import json
from typing import Final, TypeVar

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.rules import Rule, RuleSet
from mendflow.core.model.values import Value
from mendflow.formats.xml.tree import Element, Instruction, serialized, tidy

T = TypeVar("T", bound=msgspec.Struct)
TARGET: Final = "mendflow"
BOUND: Final = {"condition": "condition", "exlet": "conclusion", "cornerstone": "cornerstone", "note": "description"}
"""Fields of a rule, and the parts of theirs that they are bound to."""

FREE: Final = ("author", "at", "passive", "kept")
ABOUT_SET: Final = ("name", "version", "author", "at", "note", "kept")


def rule_words(rule: Rule, read: Rule, node: Element) -> Instruction | None:
    """What reading the node would not tell of the rule."""
    said: dict[str, Value] = {name: getattr(rule, name) for name in FREE if getattr(rule, name) != getattr(read, name)}
    for name, tag in BOUND.items():
        if getattr(rule, name) != getattr(read, name):
            said[name] = {"for": mark(node, tag), "is": getattr(rule, name)}
    return instruction(said) if said else None


def set_words(rule_set: RuleSet, read: RuleSet) -> Instruction | None:
    said: dict[str, Value] = {
        name: getattr(rule_set, name) for name in ABOUT_SET if getattr(rule_set, name) != getattr(read, name)
    }
    flows = {name: flow for name, flow in rule_set.exlets.items() if read.exlets.get(name) != flow}
    if flows:
        said["exlets"] = msgspec.to_builtins(flows)
    return instruction(said) if said else None


def instruction(said: dict[str, Value]) -> Instruction:
    # `?>` would end it.
    return Instruction(TARGET, json.dumps(said, sort_keys=True).replace(">", "\\u003e"))


def words_in(node: Element) -> dict[str, Value]:
    for child in node.children:
        if isinstance(child, Instruction) and child.target == TARGET:
            try:
                found = json.loads(child.text)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    return {}


def into_rule(rule: Rule, node: Element) -> Rule:
    said = words_in(node)
    change: dict[str, Value] = {name: said[name] for name in FREE if name in said}
    for name, tag in BOUND.items():
        bound = said.get(name)
        if isinstance(bound, dict) and bound.get("for") == mark(node, tag):
            change[name] = bound.get("is")
    return convert(rule, Rule, change)


def into_set(rule_set: RuleSet, root: Element) -> RuleSet:
    """The set with what was said of it, and without exlets that no rule concludes and nobody spoke of."""
    said = words_in(root)
    whole = convert(rule_set, RuleSet, {name: said[name] for name in ABOUT_SET if name in said})
    used = {rule.exlet for trees in whole.trees.values() for tree in trees.values() for rule in tree.rules.values()}
    exlets = {name: flow for name, flow in whole.exlets.items() if name in used}
    try:
        exlets.update(msgspec.convert(said.get("exlets", {}), dict[str, Flow]))
    except msgspec.ValidationError:
        pass
    return msgspec.structs.replace(whole, exlets=exlets)


def convert(struct: T, kind: type[T], change: dict[str, Value]) -> T:
    """The struct with these fields changed, if they can be; a stranger may have written them."""
    if not change:
        return struct
    try:
        checked = msgspec.convert({**msgspec.to_builtins(struct), **change}, kind, strict=False)
    except msgspec.ValidationError:
        return struct
    return msgspec.structs.replace(struct, **{name: getattr(checked, name) for name in change})


def mark(node: Element, tag: str) -> str:
    """What a part says, in short."""
    part = node.child(tag)
    said = serialized(tidy(part)) if part is not None else ""
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]
