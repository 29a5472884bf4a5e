"""Ripple-down rules: evaluation, insertion, and trials on past failures."""

from mendflow.core.rules.candidates import Candidate, candidates
from mendflow.core.rules.differences import Difference, differences, differences_text, narrowed, sides_text
from mendflow.core.rules.evaluation import (
    ROOTS,
    CompiledRules,
    RuleVerdict,
    compile_rules,
    context_lookup,
    tree_for,
)
from mendflow.core.rules.history import restore
from mendflow.core.rules.insertion import (
    CornerstoneConflict,
    Draft,
    InsertedRule,
    InsertionPoint,
    add_rule,
    neighbour_cornerstone,
    place,
)
from mendflow.core.rules.revision import (
    RuleEdit,
    RuleLocation,
    edit_rule,
    find_passive_rule,
    is_out_of_use,
    locate_rule,
    promote,
    replace_exlet,
    retire,
    set_passive,
    with_exlet,
)
from mendflow.core.rules.trials import TrialResult, try_in_place, try_rule
from mendflow.core.rules.triggers import Trigger, triggers
from mendflow.core.rules.validation import demand_named, demand_valid, problems_of

__all__ = [
    "ROOTS",
    "Candidate",
    "CompiledRules",
    "CornerstoneConflict",
    "Difference",
    "Draft",
    "InsertedRule",
    "InsertionPoint",
    "RuleEdit",
    "RuleLocation",
    "RuleVerdict",
    "TrialResult",
    "Trigger",
    "add_rule",
    "candidates",
    "compile_rules",
    "context_lookup",
    "demand_named",
    "demand_valid",
    "differences",
    "differences_text",
    "edit_rule",
    "find_passive_rule",
    "is_out_of_use",
    "locate_rule",
    "narrowed",
    "neighbour_cornerstone",
    "place",
    "problems_of",
    "promote",
    "replace_exlet",
    "restore",
    "retire",
    "set_passive",
    "sides_text",
    "tree_for",
    "triggers",
    "try_in_place",
    "try_rule",
    "with_exlet",
]
