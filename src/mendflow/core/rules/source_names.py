"""Which sources rules read: found in the texts of conditions and exlets, so that no other source is asked."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from mendflow.core.model.repair import ExceptionType, RuleError
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

ANY_SOURCE: Final = "*"
"""A condition that reads `sources` as a whole reads all of them."""

AWAY_ROOT: Final = "sources_away"
"""Where a context says which sources gave nothing, and why."""

_IN_CONDITION = lazy_pattern(r"""(?<![\w.])sources\b(?:\s*\.\s*([A-Za-z_]\w*)|\s*\[\s*["']([^"']+)["']\s*\])?""")
_IN_EXLET = lazy_pattern(r"""(?<![\w.])sources(?:\.([A-Za-z_]\w*)|\[\\?["']([^"'\\]+)\\?["']\])""")


def sources_in(condition: str) -> frozenset[str]:
    """The names that a condition reads below `sources`."""
    return frozenset(found[1] or found[2] or ANY_SOURCE for found in _IN_CONDITION.finditer(condition))


def sources_read(rules: RuleSet, types: Iterable[ExceptionType] | None = None) -> frozenset[str]:
    """The sources that the rules for these types, or for all, and the set's exlets read."""
    wanted = set(rules.trees) if types is None else set(types)
    found: set[str] = set()
    for type, trees in rules.trees.items():
        conditions = (rule.condition for tree in trees.values() for rule in tree.rules.values())
        for condition in conditions if type in wanted else ():
            if "sources" in condition:
                found |= sources_in(condition)
    for exlet in rules.exlets.values():
        text = msgspec.json.encode(exlet).decode()
        found |= {each[1] or each[2] for each in _IN_EXLET.finditer(text)} if "sources" in text else set()
    return frozenset(found)


def explained_error(error: RuleError, context: Mapping[str, Value]) -> RuleError:
    """The error with the reason why a source that it names gave nothing."""
    away = context.get(AWAY_ROOT)
    if not isinstance(away, dict) or "sources" not in error.error:
        return error
    reasons = [f"source {name}: {away[name]}" for name in sorted(sources_in(error.error)) if name in away]
    return msgspec.structs.replace(error, error="; ".join((error.error, *reasons)))
