"""Versions of a rule set: differences between two, and restoring an earlier one as the newest."""

from typing import Literal

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One difference. `was` and `now` have the changed fields of a rule."""

    kind: Literal["added", "removed", "changed"]
    what: Literal["rule", "exlet"]
    type: ExceptionType | None = None
    tree: str = ""
    rule: int | None = None
    exlet: str = ""
    was: dict[str, object] = {}
    now: dict[str, object] = {}


COMPARED_FIELDS = ("condition", "exlet", "on_true", "on_false", "author", "at", "note", "passive")


def diff(old: RuleSet, new: RuleSet) -> list[Difference]:
    """What changed, tree by tree, then exlet by exlet. A rule of which only the links changed is left out: the inserted
    rule is listed instead."""
    found: list[Difference] = []
    for type in [*old.trees, *(each for each in new.trees if each not in old.trees)]:
        before, after = old.trees.get(type, {}), new.trees.get(type, {})
        for tree in [*before, *(each for each in after if each not in before)]:
            found += tree_diff(type, tree, before.get(tree, RuleTree({})), after.get(tree, RuleTree({})))
    for name in [*old.exlets, *(each for each in new.exlets if each not in old.exlets)]:
        if name not in new.exlets:
            found.append(Difference(kind="removed", what="exlet", exlet=name))
        elif name not in old.exlets:
            found.append(Difference(kind="added", what="exlet", exlet=name))
        elif old.exlets[name] != new.exlets[name]:
            found.append(Difference(kind="changed", what="exlet", exlet=name))
    return found


def tree_diff(type: ExceptionType, tree: str, before: RuleTree, after: RuleTree) -> list[Difference]:
    found: list[Difference] = []
    for id in [*before.rules, *(each for each in after.rules if each not in before.rules)]:
        was, now = before.rules.get(id), after.rules.get(id)
        kind: Literal["added", "removed", "changed"] = (
            "added" if was is None else "removed" if now is None else "changed"
        )
        shown = [compared_fields(each) for each in (was, now)]
        names = [name for name in COMPARED_FIELDS if shown[0].get(name) != shown[1].get(name)]
        if kind == "changed" and not set(names) - {"on_true", "on_false"}:
            continue
        found.append(
            Difference(
                kind=kind,
                what="rule",
                type=type,
                tree=tree,
                rule=id,
                was={name: shown[0][name] for name in names if name in shown[0]},
                now={name: shown[1][name] for name in names if name in shown[1]},
            )
        )
    return found


def compared_fields(rule: Rule | None) -> dict[str, object]:
    return {name: getattr(rule, name) for name in COMPARED_FIELDS} if rule is not None else {}


def restore(current: RuleSet, earlier: RuleSet, *, author: str = "", at: Instant = 0) -> RuleSet:
    """An earlier version as the newest."""
    note = f"version {earlier.version} again"
    return msgspec.structs.replace(earlier, version=current.version + 1, author=author, at=at, note=note)
