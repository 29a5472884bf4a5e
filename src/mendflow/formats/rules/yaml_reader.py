"""Reads a rule file: rows of rules by exception and task, and their exlets.

A row is evaluated from its top: the first rule that holds is taken, then its `except` in the same way. That is the tree
of the model in a readable form. A tree without such a form is written rule by rule."""

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.errors import BadFlow, BadRules
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.core.model.rules import ALL_TASKS, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules.validation import shape_problems
from mendflow.formats.files import flow_text
from mendflow.formats.rules import rule_keys
from mendflow.formats.rules.conditions import condition
from mendflow.formats.rules.exlet_parser import ExletParser
from mendflow.formats.spelling import nearest_word, suggestion_for
from mendflow.formats.yaml.basic_steps import is_file
from mendflow.formats.yaml.document import (
    ListNode,
    MapEntry,
    MapNode,
    ScalarNode,
    YamlNode,
    describe,
    parse,
    plain_data,
)
from mendflow.formats.yaml.exlet_keys import PRIMITIVES
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.flow_file import in_order
from mendflow.formats.yaml.reader import YamlReader

LEVELS_MAX: Final = 30
"""How deep `except` may stand in `except` before the rules are to be linked by their numbers instead."""


def load_yaml(path: str | Path) -> RuleSet:
    """The rules in a file. Raises BadRules with every problem and its place."""
    path = Path(path)
    try:
        text = flow_text(path, str(path))
    except BadFlow as error:
        raise BadRules(problems=error.problems) from None
    return read_rules(text, path)


def read_rules(text: str, path: str | Path = "rules.yaml") -> RuleSet:
    """The rules in a text that stands, or would stand, at this path."""
    path = Path(path)
    try:
        root, problems = parse(text, str(path))
        reader = YamlReader(str(path), text, path.parent.resolve())
        reader.problems.extend(problems)
        rule_set = RuleFileParser(reader).read(root, path.name.partition(".")[0])
    except BadFlow as error:
        raise BadRules(problems=error.problems) from None
    if reader.problems or rule_set is None:
        raise BadRules(problems=in_order(reader.problems, str(path)))
    return rule_set


NOTHING: Final = "nothing"
"""What a rule concludes that says: nothing is to be done, by the default rules neither."""


class RuleFileParser:
    """One reading of a rule file."""

    def __init__(self, reader: YamlReader) -> None:
        self.reader = reader
        self.exlets = ExletParser(reader)

    def read(self, root: YamlNode, name: str) -> RuleSet | None:
        if not isinstance(root, MapNode):
            self.reader.problem(root, f"a rule file is a map with exceptions such as `abort:`, not {describe(root)}")
            return None
        fields = Fields(self.reader, root, rule_keys.FILE)
        for key, entry in root.entries.items():
            if key not in rule_keys.FILE and not key.startswith("x-"):
                self.reader.problem(entry.key, f"a rule file has no key `{key}`", suggestion_for(key, rule_keys.FILE))
        self.exlets.named(fields.node_of("exlets"))
        trees = {type: self.trees(type, node) for type in ExceptionType if (node := fields.node_of(type)) is not None}
        return RuleSet(
            name=fields.get("rules", name),
            version=fields.get("version", 0),
            trees={type: each for type, each in trees.items() if each},
            exlets=self.exlets.flows,
            author=fields.get("author", ""),
            at=self.moment(fields.node_of("at")),
            note=fields.get("note", ""),
            kept=self.exlets.remembered(self.context(fields.node_of("kept"), {})),
            flow_versions=tuple(fields.get("flow-versions", ())),
            renamed=fields.get("renamed", {}),
        )

    def trees(self, type: ExceptionType, node: YamlNode) -> dict[str, RuleTree]:
        if isinstance(node, ScalarNode) and node.value is None:
            return {}
        if type in CASE_LEVEL:
            return {"": self.tree(type, "", node)}
        if isinstance(node, ListNode):
            return {ALL_TASKS: self.tree(type, ALL_TASKS, node)}
        if not isinstance(node, MapNode):
            self.reader.problem(
                node, f"`{type}` is a list of rules, or a map of such lists by task, not {describe(node)}"
            )
            return {}
        if "" in node.entries:
            self.reader.problem(node.entries[""].key, "a task has a name; `*` stands for all that have no rules here")
        return {task: self.tree(type, task, entry.value) for task, entry in node.entries.items()}

    def tree(self, type: ExceptionType, task: str, node: YamlNode) -> RuleTree:
        if isinstance(node, MapNode):
            return self.linked(type, task, node)
        making = RuleTreeBuilder(self, type, task)
        row = making.row(node, 0)
        if row is None and isinstance(node, ListNode):
            self.reader.problem(node, "a list of rules needs at least one rule; leave the key out where there is none")
        return RuleTree(making.rules, row if row is not None else 0)

    def linked(self, type: ExceptionType, task: str, node: MapNode) -> RuleTree:
        """A tree whose rules are linked by their numbers."""
        fields = fields_of(self.reader, node, rule_keys.FLAT, "a tree of linked rules")
        assert fields is not None
        making = RuleTreeBuilder(self, type, task)
        rows = fields.node_of("rules")
        parts = rows.parts if isinstance(rows, ListNode) else []
        if rows is not None and not isinstance(rows, ListNode):
            self.reader.problem(rows, f"a list of rules is expected here, not {describe(rows)}")
        for part in parts:
            making.linked(part)
        tree = RuleTree(making.rules, fields.get("root", 0))
        for problem in shape_problems(tree):
            self.reader.problem(node, problem)
        return tree

    def context(self, node: YamlNode | None, default: dict[str, Value]) -> dict[str, Value]:
        """A map of data, or its JSON."""
        value = plain_data(node) if node is not None else default
        if isinstance(value, str):
            try:
                value = msgspec.json.decode(value)
            except msgspec.DecodeError:
                value = None
        if isinstance(value, dict):
            return value
        assert node is not None
        self.reader.problem(node, f"a map, or its JSON as a text, is expected here, not {describe(node)}")
        return default

    def moment(self, node: YamlNode | None) -> Instant:
        value = plain_data(node) if node is not None else 0
        if isinstance(value, int) and not isinstance(value, bool):
            return Instant(value)
        try:
            found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
            assert found.tzinfo is not None
            return Instant(round(found.timestamp() * 1000))
        except (ValueError, AssertionError, OverflowError):
            assert node is not None
            self.reader.problem(node, "a moment (such as 2030-01-31T08:00:00Z) is expected here")
            return Instant(0)


class RuleTreeBuilder:
    """The rules of one tree, as they are read."""

    def __init__(self, file: RuleFileParser, type: ExceptionType, task: str) -> None:
        self.file = file
        self.reader = file.reader
        self.type = type
        self.task = task
        self.rules: dict[int, Rule] = {}
        self._last = 0

    def row(self, node: YamlNode, level: int) -> int | None:
        """Read a row; the id of its first rule."""
        if not isinstance(node, ListNode):
            self.reader.problem(node, f"a list of rules is expected here, not {describe(node)}")
            return None
        if level > LEVELS_MAX:
            message = f"exceptions stand more than {LEVELS_MAX} deep in each other; link the rules by their numbers"
            self.reader.problem(node, message)
            return None
        ids = [id for part in node.parts if (id := self.rule(part, level)) is not None]
        for id, following in pairwise(ids):
            self.rules[id] = msgspec.structs.replace(self.rules[id], on_false=following)
        return ids[0] if ids else None

    def rule(self, node: YamlNode, level: int) -> int | None:
        fields = fields_of(self.reader, node, rule_keys.RULE, "a rule")
        if fields is None:
            return None
        id = self.take_id(fields)
        if id is None:
            return None
        self.rules[id] = self.made(id, fields)
        refinements = fields.node_of("except")
        if refinements is not None:
            self.rules[id] = msgspec.structs.replace(self.rules[id], on_true=self.row(refinements, level + 1))
        return id

    def linked(self, node: YamlNode) -> None:
        fields = fields_of(self.reader, node, rule_keys.LINKED, "a rule")
        id = self.take_id(fields) if fields is not None else None
        if fields is not None and id is not None:
            links = {"on_true": fields.get("then"), "on_false": fields.get("else")}
            self.rules[id] = msgspec.structs.replace(self.made(id, fields), **links)

    def take_id(self, fields: Fields) -> int | None:
        given: int | None = fields.get("id")
        if given is not None and given in self.rules:
            self.reader.problem(fields.node.entries["id"].value, f"two rules of this tree have the id {given}")
            return None
        if given is None:
            self._last += 1
            while self._last in self.rules:
                self._last += 1
            return self._last
        return given

    def made(self, id: int, fields: Fields) -> Rule:
        asked, does = fields.node_of("if"), fields.node_of("do")
        stone = fields.node_of("cornerstone")
        return Rule(
            id=id,
            condition=condition(self.reader, asked) if asked is not None else "false",
            exlet=self.exlet(id, does) if does is not None else "",
            author=fields.get("author", ""),
            at=self.file.moment(fields.node_of("at")),
            note=fields.get("note", ""),
            passive=fields.get("passive", False),
            cornerstone=self.file.context(stone, {}) if stone is not None else None,
            kept=self.file.context(fields.node_of("kept"), {}),
        )

    def exlet(self, id: int, node: YamlNode) -> str:
        """The name of what a rule concludes."""
        if isinstance(node, ScalarNode) and node.value is None:
            return ""
        if not isinstance(node, ScalarNode) and self.type is ExceptionType.SELECTION:
            self.reader.problem(node, "a rule of `selection` concludes a flow: give its name")
            return ""
        if not isinstance(node, ScalarNode):
            return self.file.exlets.inline(self.type, self.task, id, node)
        name = node.value if isinstance(node.value, str) else node.written
        if self.type is ExceptionType.SELECTION and is_file(name):
            return self.file.exlets.worklet(node, name)
        if self.type is not ExceptionType.SELECTION and name not in self.file.exlets.flows:
            if name == NOTHING:
                empty = MapEntry(ScalarNode(node.place, "empty"), ScalarNode(node.place, True))
                return self.file.exlets.inline(self.type, self.task, id, MapNode(node.place, {"empty": empty}))
            if name in PRIMITIVES:
                return self.file.exlets.inline(self.type, self.task, id, node)
        if self.type is not ExceptionType.SELECTION and name not in self.file.exlets.flows:
            self.reader.problem(node, f"there is no exlet `{name}`", nearest_word(name, self.file.exlets.flows))
        return name
