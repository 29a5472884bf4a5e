"""Ripple-down rules: the rule set of a flow, with a tree per type of exception and task.

A tree is binary. A rule on the true side of another refines it: it is evaluated only if that one holds. A rule on the
false side is evaluated instead. The last rule that held decides. Rule sets are immutable: adding a rule makes a new
version, and every version is kept."""

from typing import Final

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.values import Value

DEFAULT_RULES: Final = "*"
"""The name of the default rules, which are used for every flow whose own rules conclude nothing."""

DEFAULT_RULES_WORDS: Final = "the default rules"

DEFAULT_RULES_SEEN: Final = (
    "the default rules are read in all projects: so are the condition, the exlet and the note of this rule. The case"
    " that it was made for is shown only to those who see its project"
)
"""What whoever teaches a default rule is told."""

ALL_TASKS: Final = "*"
"""The name of the tree for all tasks without their own."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`condition` is CEL. `exlet` names an exlet of the set (for selection: a flow); an empty one concludes nothing, as
    in a root that always holds. `cornerstone` is the context of the case that the rule was made for. `kept` has the
    parts of an imported rule that have no equivalent here, so that it can be exported unchanged."""

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
    """Rules by id; `root` is evaluated first."""

    rules: dict[int, Rule]
    root: int = 0


class RuleSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules of one flow (or the default rules), and their exlets. At case level, a type's only tree is under the
    empty task. `flow_versions` are the versions of the flow that the rules hold for, as `case.version` names them; all,
    if there are none. `renamed` has the new names of tasks: a task without a tree of its own has that of the one that
    was renamed to it."""

    name: str
    version: int = 0
    trees: dict[ExceptionType, dict[str, RuleTree]] = {}
    exlets: dict[str, Flow] = {}
    author: str = ""
    at: Instant = 0
    note: str = ""
    project: str = DEFAULT_PROJECT
    kept: dict[str, Value] = {}
    flow_versions: tuple[str, ...] = ()
    renamed: dict[str, str] = {}


def rule_text(rules: str, rule: int | None) -> str:
    """A rule for people: `rule 8 of the default rules`, `rule 1 of night`."""
    return f"rule {rule} of {DEFAULT_RULES_WORDS if rules == DEFAULT_RULES else rules}"
