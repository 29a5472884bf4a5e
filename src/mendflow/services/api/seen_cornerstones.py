"""Whose cornerstones somebody may look at.

A rule of the default rules is for all projects, and is shown to all of them; the case that it was made for is of one
project. So a cornerstone is shown, compared with and told of as its case is: to those who see that case's project."""

from collections.abc import Mapping

from msgspec.structs import replace

from mendflow.core.model.principals import DEFAULT_PROJECT, Sight
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.services.api.project_lookup import ProjectLookup


class SeenCornerstones:
    def __init__(self, lookup: ProjectLookup, sight: Sight) -> None:
        self._lookup = lookup
        self._sight = sight
        self._known: dict[str, str | None] = {}  # the projects of cases, by what is named after them

    async def sees(self, rules: str, stone: Mapping[str, Value]) -> bool:
        """Whether the cornerstone of a rule of this set may be told. One that was written by hand, as those of the
        shipped rules, is its set's. So is one of a case that is not known any more, but in the default rules only those
        who see everything see it."""
        if self._sight.projects is None:
            return True
        project = await self._project_of_case(stone)
        if project is not None:
            return self._sight.sees(project)
        if rules == DEFAULT_RULES:
            return not _event_of(stone)
        return self._sight.sees(await self._lookup.of_rules(rules) or DEFAULT_PROJECT)

    async def _may_show(self, rules: str, rule: Rule) -> bool:
        """What is kept of an imported rule may have its cornerstone as a text."""
        if rule.cornerstone is None and not rule.kept:
            return True
        return await self.sees(rules, rule.cornerstone or {})

    async def _project_of_case(self, stone: Mapping[str, Value]) -> str | None:
        case, event = _part(stone, "case"), _event_of(stone)
        for id in (event, _text(case, "id")):
            if id and (found := await self._of_case(id)) is not None:
                return found
        flow = _text(case, "flow")
        return await self._lookup.of_flow(flow) if event and flow and not _text(case, "engine") else None

    async def _of_case(self, id: str) -> str | None:
        if id not in self._known:
            self._known[id] = await self._lookup.of_case(id)
        return self._known[id]

    async def shown(self, rules: RuleSet) -> RuleSet:
        return (await self.of(rules))[0]

    async def of(self, rules: RuleSet) -> tuple[RuleSet, list[str]]:
        """The set without the cornerstones that are hidden, and of which rules these are: `abort/align/3`."""
        if self._sight.projects is None:
            return rules, []
        hidden: list[str] = []
        trees: dict[ExceptionType, dict[str, RuleTree]] = {}
        for type, by_task in rules.trees.items():
            trees[type] = {}
            for task, tree in by_task.items():
                kept = dict(tree.rules)
                for id, rule in tree.rules.items():
                    if await self._may_show(rules.name, rule):
                        continue
                    kept[id] = replace(rule, cornerstone=None, kept={})
                    hidden.append(f"{type.value}/{task}/{id}")
                trees[type][task] = replace(tree, rules=kept)
        return (replace(rules, trees=trees), hidden) if hidden else (rules, [])


def _event_of(stone: Mapping[str, Value]) -> str:
    """The exception that it was made for: whatever was kept of a case names one."""
    return _text(_part(stone, "event"), "id")


def _text(part: Mapping[str, Value], name: str) -> str:
    found = part.get(name)
    return found if isinstance(found, str) else ""


def _part(stone: Mapping[str, Value], root: str) -> Mapping[str, Value]:
    found = stone.get(root)
    return found if isinstance(found, dict) else {}
