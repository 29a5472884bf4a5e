"""Ripple-down rules: what they conclude, how they grow, and what they would have done."""

from mendflow.core.rules.candidates import Candidate, candidates
from mendflow.core.rules.evaluation import ROOTS, CompiledRules, Verdict, compiled, looking_into, tree_for, way
from mendflow.core.rules.growth import Draft, Grown, Place, WouldChange, add, neighbouring, place
from mendflow.core.rules.history import Difference, diff, restore
from mendflow.core.rules.revision import (
    Standing,
    out_of_use,
    promote,
    replace_exlet,
    retire,
    set_passive,
    standing,
    tried_before,
    with_exlet,
)
from mendflow.core.rules.trials import Replayed, Tried, play, try_in_place, try_rule
from mendflow.core.rules.triggers import Trigger, triggers
from mendflow.core.rules.validity import demand_named, demand_valid, problems_of

__all__ = [
    "ROOTS",
    "Candidate",
    "CompiledRules",
    "Difference",
    "Draft",
    "Grown",
    "Place",
    "Replayed",
    "Standing",
    "Tried",
    "Trigger",
    "Verdict",
    "WouldChange",
    "add",
    "candidates",
    "compiled",
    "demand_named",
    "demand_valid",
    "diff",
    "looking_into",
    "neighbouring",
    "out_of_use",
    "place",
    "play",
    "problems_of",
    "promote",
    "replace_exlet",
    "restore",
    "retire",
    "set_passive",
    "standing",
    "tree_for",
    "tried_before",
    "triggers",
    "try_in_place",
    "try_rule",
    "way",
    "with_exlet",
]
