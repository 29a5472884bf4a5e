"""Ripple-down rules: a rule set of a flow, with a tree for each type of exception and task.

A tree is binary. What hangs on a rule's true side refines it: it is asked only where the rule holds. What hangs on its
false side is asked instead. The last rule that held decides. Rule sets never change: adding a rule makes the next
version, and every version is kept."""

from typing import Final

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.values import Value

DEFAULT_RULES: Final = "*"
"""The name of the rule set that is asked for every flow whose own rules conclude nothing, and of the tree of all tasks
that have none of their own."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`condition` is CEL. `exlet` names an exlet of the set (for selection: a flow); empty concludes nothing, which is
    what a root that always holds does. `cornerstone` is the context of the case that the rule was made for. `kept` is
    what a foreign file said of the rule and we have no word for, so that it can be written again."""

    id: int
    condition: str
    exlet: str = ""
    on_true: int | None = None
    on_false: int | None = None
    author: str = ""
    at: Instant = 0
    note: str = ""
    cornerstone: dict[str, Value] | None = None
    passive: bool = False  # on trial: decides and is recorded, does nothing
    kept: dict[str, Value] = {}


class RuleTree(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rules by id; `root` is asked first."""

    rules: dict[int, Rule]
    root: int = 0


class RuleSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules of one flow (or of all: HOUSE), and the exlets that they conclude. At case level a type's one tree is
    under the empty task."""

    name: str
    version: int = 0
    trees: dict[ExceptionType, dict[str, RuleTree]] = {}
    exlets: dict[str, Flow] = {}
    author: str = ""
    at: Instant = 0
    note: str = ""
    kept: dict[str, Value] = {}
