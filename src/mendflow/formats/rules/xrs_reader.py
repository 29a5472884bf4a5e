"""Reads YAWL's rule files (.xrs) as rule sets. Nothing is lost: what has no counterpart is kept as it was.

A part of a rule is kept only if writing the understood form would not give it back. When written again, the kept form
is used as long as it still means what the rule says; a changed rule is written anew. Something without any counterpart,
such as an XQuery, becomes a rule that never holds, and is reported with its place."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import BadRules, Problem
from mendflow.core.model.flow import Flow
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules.validation import name_of, shape_problems
from mendflow.formats.rules import xrs_extensions
from mendflow.formats.rules import yawl_vocabulary as words
from mendflow.formats.rules.exlet_parser import inline_name
from mendflow.formats.rules.yawl_conditions import Untranslatable, to_cel
from mendflow.formats.rules.yawl_exlets import UntranslatableAction, YawlStep, exlet_of, known_steps, step_flaw
from mendflow.formats.xml.markup import (
    BOUNDS,
    MarkupComment,
    MarkupElement,
    bad_rules,
    parse_xml,
    serialize,
    strip_blanks,
)

XRS_KEY: Final = "xrs"
TYPE_BY_PATH: Final[dict[str, ExceptionType]] = {path.lower(): type for type, path in words.PLACES.items()}


class XrsTranslation(NamedTuple):
    """The rules, and what of the file could not be said in ours, each with its place."""

    rule_set: RuleSet
    problems: list[Problem]


def load_xrs(path: str | Path, types: Mapping[str, str] = words.NO_TYPES) -> XrsTranslation:
    """The rules in a file. `types` are those that the flow declares for its data: XML has texts only."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(BOUNDS.bytes + 1)
    except OSError as error:
        raise bad_rules(str(path), f"it cannot be read: {error.strerror}") from None
    return read_xrs(data, path, types)


def read_xrs(
    data: bytes | str, path: str | Path = "rules.xrs", types: Mapping[str, str] = words.NO_TYPES
) -> XrsTranslation:
    """The rules in a text that stands, or would stand, at this path. Raises BadRules for what is no rule file."""
    reader = XrsReader(str(path), types)
    rule_set = reader.rule_set(parse_xml(data, str(path)), Path(path).stem)
    if reader.wrong:
        raise BadRules(problems=reader.wrong)
    return XrsTranslation(rule_set, reader.untranslated)


class XrsReader:
    def __init__(self, file: str, types: Mapping[str, str] = words.NO_TYPES) -> None:
        self.file = file
        self.types = types
        self.wrong: list[Problem] = []
        self.untranslated: list[Problem] = []
        self.exlets: dict[str, Flow] = {}
        self.names: frozenset[str] = frozenset()
        self.tasks: dict[str, Value] = {}

    def problem(self, at: MarkupElement, message: str) -> Problem:
        return Problem(file=self.file, line=at.line, message=message)

    def rule_set(self, root: MarkupElement, stem: str) -> RuleSet:
        attributes = root.attributes
        name = attributes.get("uri") or attributes.get("name") or stem
        self.names = frozenset(words.names_in(root))
        order: list[str] = []
        trees: dict[ExceptionType, dict[str, RuleTree]] = {}
        others: list[Value] = []
        for path, place in self.places(root, others):
            order.append(path)
            type = TYPE_BY_PATH[path.lower()]
            trees.setdefault(type, {}).update(self.trees(type, place))
        kept: dict[str, Value] = {"root": root.tag, "attributes": attributes, "order": order}
        if not attributes.get("uri") and not attributes.get("name"):
            kept["file"] = stem
        if any(child.local == "task" for child in root.elements()):
            kept["selection_only"] = True
        if others:
            kept["others"] = others
        if self.tasks:
            kept["tasks"] = self.tasks
        rule_set = RuleSet(
            name=name,
            trees={type: each for type, each in trees.items() if each},
            exlets=self.exlets,
            kept={XRS_KEY: kept},
        )
        return xrs_extensions.extend_set(rule_set, root)

    def places(self, root: MarkupElement, others: list[Value]) -> Iterator[tuple[str, MarkupElement]]:
        """The elements that hold trees, with the paths to them; what else there is goes to the others."""
        selection_only = [child for child in root.elements() if child.local == "task"]
        if selection_only:
            yield "selection", MarkupElement("selection", {}, list(selection_only), root.line)
        for child in root.children:
            if isinstance(child, MarkupComment):
                others.append({"comment": child.text})
            elif isinstance(child, MarkupElement) and child not in selection_only:
                yield from self.below(child, child.local, others)

    def below(self, element: MarkupElement, path: str, others: list[Value]) -> Iterator[tuple[str, MarkupElement]]:
        if path.lower() in TYPE_BY_PATH:
            yield path, element
        elif any(place.startswith(f"{path.lower()}/") for place in TYPE_BY_PATH):
            for child in element.elements():
                yield from self.below(child, f"{path}/{child.local}", others)
        else:
            self.untranslated.append(self.problem(element, f"`{element.tag}` is no exception that is known here"))
            others.append({"xml": serialize(strip_blanks(element))})

    def trees(self, type: ExceptionType, place: MarkupElement) -> dict[str, RuleTree]:
        if type in CASE_LEVEL:
            return {"": self.tree(type, "", self.case_level_holder(type, place))}
        found: dict[str, RuleTree] = {}
        for task in place.elements():
            name = task.attributes.get("name", "")
            if not name or name in found:
                self.wrong.append(self.problem(task, "a task has a name of its own"))
                continue
            found[name] = self.tree(type, name, task)
            more = {key: value for key, value in task.attributes.items() if key != "name"}
            if more:
                self.tasks[name_of(type, name)] = more
        return found

    def case_level_holder(self, type: ExceptionType, place: MarkupElement) -> MarkupElement:
        """The element that holds the rules: the type's own, or the one task in it that stands for the whole case."""
        tasks = [child for child in place.elements() if child.local == "task"]
        if not tasks:
            return place
        [first, *more] = tasks
        self.wrong += [self.problem(each, "a case has one tree of rules, and here is another") for each in more]
        self.tasks[name_of(type, "")] = dict(first.attributes)
        return first

    def tree(self, type: ExceptionType, task: str, holder: MarkupElement) -> RuleTree:
        rules: dict[int, Rule] = {}
        root: int | None = None
        for node in holder.elements():
            rule = self.rule(type, task, node)
            if rule is None:
                continue
            if rule.id in rules:
                self.wrong.append(self.problem(node, f"two rules of this tree have the id {rule.id}"))
            rules[rule.id] = rule
            root = rule.id if root is None or words.text_of(node, "parent") == "-1" else root
        tree = RuleTree(rules, root or 0)
        self.wrong += [self.problem(holder, problem) for problem in shape_problems(tree)]
        return tree

    def rule(self, type: ExceptionType, task: str, node: MarkupElement) -> Rule | None:
        numbers = [words.number(node, tag) for tag in ("id", "trueChild", "falseChild")]
        if numbers[0] is None or numbers[0] < 0:
            self.wrong.append(self.problem(node, "a rule has an id: a whole number"))
            return None
        links = [None if number is None or number < 0 else number for number in numbers]
        id = numbers[0]
        condition, exlet = self.condition(node), self.exlet(type, task, id, node)
        stone = node.child("cornerstone")
        rule = Rule(
            id=id,
            condition=condition,
            exlet=exlet,
            on_true=links[1],
            on_false=links[2],
            note=words.text_of(node, "description"),
            cornerstone=words.cornerstone_in(stone, self.types) if stone is not None else None,
        )
        return xrs_extensions.extend_rule(self.with_kept(rule, type, node), node)

    def with_kept(self, rule: Rule, type: ExceptionType, node: MarkupElement) -> Rule:
        """The rule with what writing it would not give back."""
        steps = words.steps_in_rule(rule, type, self.exlets)
        kept: dict[str, Value] = {}
        for tag in words.PARTS:
            part = node.child(tag)
            text = serialize(strip_blanks(part)) if part is not None else ""
            if text != words.part(tag, rule, steps):
                kept[tag] = text
        if node.attributes:
            kept["attributes"] = node.attributes
        strange = [child for child in node.elements() if child.local not in {*words.PARTS, *words.LINKS}]
        if strange:
            kept["others"] = [serialize(strip_blanks(child)) for child in strange]
        return msgspec.structs.replace(rule, kept={XRS_KEY: kept}) if kept else rule

    def condition(self, node: MarkupElement) -> str:
        part = node.child("condition")
        text = part.text if part is not None else ""
        try:
            return to_cel(text, self.names)
        except Untranslatable as reason:
            message = (
                f"the condition `{' '.join(text.split()):.80}` cannot be translated: {reason}; the rule never holds"
            )
            self.untranslated.append(self.problem(part or node, message))
            return "false"

    def exlet(self, type: ExceptionType, task: str, id: int, node: MarkupElement) -> str:
        """The name of what the rule concludes."""
        part = node.child("conclusion")
        steps = words.steps_in(part) if part is not None else []
        if not steps:
            return ""
        assert part is not None
        if type is ExceptionType.SELECTION:
            try:
                return self.selected(steps)
            except UntranslatableAction as reason:
                self.untranslated.append(self.problem(part, f"{reason}; the rule concludes nothing"))
                return ""
        known = self.translatable(steps, part)
        if not known:
            return ""
        name = inline_name(type, task, id)
        self.exlets[name] = exlet_of(name, known)
        return name

    def translatable(self, steps: list[YawlStep], part: MarkupElement) -> list[YawlStep]:
        """The steps that have a counterpart; the others are reported and left out."""
        known = known_steps(steps)
        left = "this step is left out" if known else "the rule concludes nothing"
        for number, step in enumerate(steps, 1):
            if (reason := step_flaw(step)) is not None:
                self.untranslated.append(self.problem(part, f"step {number}: {reason}; {left}"))
        return known

    def selected(self, steps: list[YawlStep]) -> str:
        [first, *more] = steps
        if more or first.action != "select" or ";" in first.target or not first.target:
            raise UntranslatableAction("a selection chooses one flow, with one `select`")
        return first.target
