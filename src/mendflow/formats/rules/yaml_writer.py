"""Writes rule sets as rule files. Reading the result gives the same rule set: each part is written in the most readable
form that loses nothing."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.core.model.rules import ALL_TASKS, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.formats.rules.dump import dump, dump_if_faithful
from mendflow.formats.rules.exlet_parser import EXLETS_KEY, exlet_node, inline_name
from mendflow.formats.rules.yaml_reader import LEVELS_MAX

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_MS: Final = 253_402_300_799_000
MANY: Final = 500
"""Above so many rules cornerstones are written as JSON, which costs a reader less."""

Entries = dict[str, Value]


def write_rules(rule_set: RuleSet, folder: str | Path = ".") -> str:
    """The file of a rule set, as it would stand in this folder."""
    return dump(RuleFileWriter(rule_set, Path(folder)).file())


def moment_text(at: int) -> Value:
    """A moment as people read it, where that says it exactly."""
    if not 0 < at <= LATEST_MS:
        return at
    text = (EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds" if at % 1000 else "seconds")
    return text.replace("+00:00", "Z")


class RuleFileWriter:
    def __init__(self, rule_set: RuleSet, folder: Path) -> None:
        self.rule_set = rule_set
        self.folder = folder.resolve()
        self.many = sum(len(tree.rules) for trees in rule_set.trees.values() for tree in trees.values()) > MANY
        kept = dict(rule_set.kept)
        remembered = kept.pop(EXLETS_KEY, {})
        self.remembered = remembered if isinstance(remembered, dict) else {}
        self.kept = kept
        self.nodes = {
            name: exlet_node(name, flow, self.remembered.get(name), self.folder)
            for name, flow in rule_set.exlets.items()
        }
        self.inlined: set[str] = set()
        self.used = Counter(
            rule.exlet for trees in rule_set.trees.values() for tree in trees.values() for rule in tree.rules.values()
        )

    def file(self) -> Entries:
        of = self.rule_set
        found: Entries = {"rules": of.name}
        found.update({name: value for name, value in (("note", of.note), ("author", of.author)) if value})
        if of.at:
            found["at"] = moment_text(of.at)
        if of.version:
            found["version"] = of.version
        if of.flow_versions:
            found["flow-versions"] = list(of.flow_versions)
        if of.renamed:
            found["renamed"] = dict(of.renamed)
        for type in ExceptionType:
            if of.trees.get(type):
                found[str(type)] = self.trees(type, of.trees[type])
        if rest := {name: node for name, node in self.nodes.items() if name not in self.inlined}:
            found["exlets"] = rest
        if self.kept:
            found["kept"] = self.context(self.kept)
        return found

    def trees(self, type: ExceptionType, trees: Mapping[str, RuleTree]) -> Value:
        if type in CASE_LEVEL:
            return self.tree(type, "", trees[""])
        made = {task: self.tree(type, task, tree) for task, tree in trees.items()}
        return made[ALL_TASKS] if set(made) == {ALL_TASKS} and isinstance(made[ALL_TASKS], list) else made

    def tree(self, type: ExceptionType, task: str, tree: RuleTree) -> Value:
        order, deepest = in_file_order(tree)
        if deepest > LEVELS_MAX or len(order) != len(tree.rules) or not order:
            return self.linked(type, task, tree)
        numbered = order == list(range(1, len(order) + 1))
        return self.row(type, task, tree, tree.root, numbered)

    def row(self, type: ExceptionType, task: str, tree: RuleTree, first: int, numbered: bool) -> list[Value]:
        """A row and all that refines it; how deep that goes was looked at before."""
        found: list[Value] = []
        each: int | None = first
        while each is not None:
            rule = tree.rules[each]
            entries = self.rule(type, task, rule)
            if rule.on_true is not None:
                entries["except"] = self.row(type, task, tree, rule.on_true, numbered)
            found.append(entries if numbered else {"id": rule.id, **entries})
            each = rule.on_false
        return found

    def linked(self, type: ExceptionType, task: str, tree: RuleTree) -> Entries:
        rules = []
        for rule in tree.rules.values():
            links = {"then": rule.on_true, "else": rule.on_false}
            given = {name: id for name, id in links.items() if id is not None}
            rules.append({"id": rule.id, **self.rule(type, task, rule), **given})
        return {"root": tree.root, "rules": rules}

    def rule(self, type: ExceptionType, task: str, rule: Rule) -> Entries:
        found: Entries = {"if": {"true": True, "false": False}.get(rule.condition, rule.condition)}
        if rule.exlet:
            found["do"] = self.exlet(type, task, rule)
        if rule.passive:
            found["passive"] = True
        found.update({name: value for name, value in (("note", rule.note), ("author", rule.author)) if value})
        if rule.at:
            found["at"] = moment_text(rule.at)
        if rule.cornerstone is not None:
            found["cornerstone"] = self.context(rule.cornerstone)
        if rule.kept:
            found["kept"] = self.context(rule.kept)
        return found

    def exlet(self, type: ExceptionType, task: str, rule: Rule) -> Value:
        name = rule.exlet
        if name == inline_name(type, task, rule.id) and self.used[name] == 1 and isinstance(self.nodes.get(name), list):
            self.inlined.add(name)
            return self.nodes[name]
        return name

    def context(self, context: Mapping[str, Value]) -> Value:
        data = dict(context)
        return json.dumps(data, ensure_ascii=False) if self.many or dump_if_faithful(data) is None else data


def in_file_order(tree: RuleTree) -> tuple[list[int], int]:
    """The rules as a file has them, each before its exceptions and those before the next; and how deep it goes. No
    recursion, and no rule twice."""
    order: list[int] = []
    seen: set[int] = set()
    deepest = 0
    pending = [(tree.root, 0)] if tree.rules else []
    while pending:
        each, level = pending.pop()
        if each in seen or each not in tree.rules:
            return [], 0
        seen.add(each)
        order.append(each)
        deepest = max(deepest, level)
        rule = tree.rules[each]
        if rule.on_false is not None:
            pending.append((rule.on_false, level))
        if rule.on_true is not None:
            pending.append((rule.on_true, level + 1))
    return order, deepest
