"""Writes rule sets as YAWL's rule files. Parts that were kept when a file was read are written unchanged, as long as
they still mean what the rule says. What YAWL cannot express goes into processing instructions, and is reported."""

from collections.abc import Mapping
from typing import NamedTuple

from mendflow.core.model.errors import BadRules, Problem
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules.validation import name_of
from mendflow.formats.rules import xrs_extensions
from mendflow.formats.rules import yawl_vocabulary as words
from mendflow.formats.rules.xrs_reader import XRS_KEY, XrsReader
from mendflow.formats.rules.yawl_conditions import Untranslatable, to_cel, to_yawl
from mendflow.formats.rules.yawl_exlets import YawlStep, known_steps
from mendflow.formats.xml.markup import MarkupComment, MarkupElement, element, parse_xml, serialize


class XrsFile(NamedTuple):
    """The file, and what YAWL will not understand of it."""

    text: str
    problems: list[Problem]


def write_xrs(rule_set: RuleSet) -> XrsFile:
    """The file of a rule set. Reading it gives the same rule set."""
    writer = XrsWriter(rule_set)
    root = writer.root()
    return XrsFile(f'<?xml version="1.0" encoding="UTF-8"?>\n{serialize(root, 0)}\n', writer.problems)


class XrsWriter:
    def __init__(self, rule_set: RuleSet) -> None:
        self.rule_set = rule_set
        self.kept = as_mapping(rule_set.kept.get(XRS_KEY))
        self.problems: list[Problem] = []
        self.names: frozenset[str] = frozenset()
        self._nodes: list[tuple[ExceptionType, str, Rule, MarkupElement]] = []

    def root(self) -> MarkupElement:
        self.names = frozenset(name for rule in self.rules() for name in data_names(rule))
        given = {str(name): str(value) for name, value in as_mapping(self.kept.get("attributes")).items()}
        root = MarkupElement(
            str(self.kept.get("root", "spec")), given if self.kept else {"uri": self.rule_set.name}, []
        )
        for type in self.order():
            self.place(root, type)
        for other in self.kept.get("others", []):
            comment = as_mapping(other).get("comment")
            root.children.append(
                MarkupComment(str(comment)) if comment is not None else parse_kept(as_mapping(other).get("xml"))
            )
        self.add_extensions(root)
        return root

    def rules(self) -> list[Rule]:
        trees = (tree for trees in self.rule_set.trees.values() for tree in trees.values())
        return [rule for tree in trees for rule in tree.rules.values()]

    def order(self) -> list[ExceptionType]:
        """The types in the order that the file had, then those that are new."""
        paths = {path.lower(): type for type, path in words.PLACES.items()}
        had = [paths[str(path).lower()] for path in self.kept.get("order", []) if str(path).lower() in paths]
        return [type for type in dict.fromkeys([*had, *words.PLACES]) if self.rule_set.trees.get(type)]

    def place(self, root: MarkupElement, type: ExceptionType) -> None:
        holder = root
        if not (type is ExceptionType.SELECTION and self.kept.get("selection_only")):
            for tag in words.PLACES[type].split("/"):
                found = holder.child(tag)
                if found is None:
                    found = element(tag)
                    holder.children.append(found)
                holder = found
        for task, tree in self.rule_set.trees[type].items():
            more = as_mapping(as_mapping(self.kept.get("tasks")).get(name_of(type, task)))
            attributes = {**({} if type in CASE_LEVEL else {"name": task}), **{key: str(more[key]) for key in more}}
            inner = element("task", **attributes) if attributes else holder
            if attributes:
                holder.children.append(inner)
            self.tree(inner, type, task, tree)

    def tree(self, holder: MarkupElement, type: ExceptionType, task: str, tree: RuleTree) -> None:
        parents = {
            child: rule.id
            for rule in tree.rules.values()
            for child in (rule.on_true, rule.on_false)
            if child is not None
        }
        # The first node of a tree is its root to YAWL.
        for rule in sorted(tree.rules.values(), key=lambda rule: rule.id != tree.root):
            node = self.node(type, task, rule, parents.get(rule.id, -1))
            holder.children.append(node)
            self._nodes.append((type, task, rule, node))

    def node(self, type: ExceptionType, task: str, rule: Rule, parent: int) -> MarkupElement:
        kept = as_mapping(rule.kept.get(XRS_KEY))
        links = (rule.id, parent, -1 if rule.on_true is None else rule.on_true)
        numbers = (*links, -1 if rule.on_false is None else rule.on_false)
        steps = words.steps_in_rule(rule, type, self.rule_set.exlets)
        attributes = {str(name): str(value) for name, value in as_mapping(kept.get("attributes")).items()}
        node = MarkupElement("ruleNode", attributes, [])
        node.children += [element(tag, str(each)) for tag, each in zip(words.LINKS, numbers, strict=True)]
        for tag in words.PARTS:
            as_it_stood = kept.get(tag)
            if as_it_stood == "":
                continue
            stood = parse_kept(as_it_stood) if isinstance(as_it_stood, str) else None
            if stood is not None and self.has_same_meaning(stood, rule, type, steps):
                node.children.append(stood)
            else:
                node.children.append(parse_kept(words.part(tag, rule, steps)))
                self.tell(tag, type, task, rule, steps)
        node.children += [parse_kept(other) for other in kept.get("others", [])]
        return node

    def has_same_meaning(
        self, stood: MarkupElement, rule: Rule, type: ExceptionType, steps: list[YawlStep] | None
    ) -> bool:
        match stood.local:
            case "condition":
                try:
                    return to_cel(stood.text, self.names) == rule.condition
                except Untranslatable:
                    return rule.condition == "false"
            case "conclusion":
                said = words.steps_in(stood)
                if type is not ExceptionType.SELECTION:
                    return known_steps(said) == steps
                return said == steps or (not rule.exlet and not is_selection(said))
            case "cornerstone":
                return words.cornerstone_in(stood) == rule.cornerstone
        return stood.text.strip() == rule.note

    def tell(self, tag: str, type: ExceptionType, task: str, rule: Rule, steps: list[YawlStep] | None) -> None:
        where = f"rule {rule.id} in {name_of(type, task)}"
        if tag == "condition" and to_yawl(rule.condition) is None:
            message = f"{where}: YAWL has no words for the condition `{rule.condition:.80}`; there the rule never holds"
            self.problems.append(Problem(message=message))
        if tag == "conclusion" and steps is None:
            message = f"{where}: YAWL has no words for the exlet `{rule.exlet}`; there the rule concludes nothing"
            self.problems.append(Problem(message=message))

    def add_extensions(self, root: MarkupElement) -> None:
        """Read what was written, and add what that does not tell."""
        reader = XrsReader("")
        reader.names = frozenset(words.names_in(root))
        for type, task, rule, node in self._nodes:
            read = reader.rule(type, task, node)
            assert read is not None
            extension = xrs_extensions.rule_extension(rule, read, node)
            if extension is not None:
                node.children.append(extension)
        read_set = XrsReader("").rule_set(root, str(self.kept.get("file", "rules")))
        about = xrs_extensions.set_extension(self.rule_set, read_set)
        if about is not None:
            root.children.insert(0, about)


def is_selection(steps: list[YawlStep]) -> bool:
    """Whether these steps choose one flow."""
    return len(steps) == 1 and steps[0].action == "select" and ";" not in steps[0].target


def data_names(rule: Rule) -> list[str]:
    return [child.local for child in words.cornerstone(rule.cornerstone).elements()]


def parse_kept(text: Value) -> MarkupElement:
    """An element as it was kept."""
    try:
        return parse_xml(str(text), "")
    except BadRules:
        return element("unreadable", words.xml_text(str(text)))


def as_mapping(value: Value) -> Mapping[str, Value]:
    return value if isinstance(value, dict) else {}
