"""Ripple-down rules: what they conclude, how they grow, and what they would have done."""

from mendflow.core.rules.candidates import Candidate, candidates
from mendflow.core.rules.evaluation import ROOTS, CompiledRules, Verdict, compiled, looking_into, tree_for, way
from mendflow.core.rules.growth import Draft, Grown, Place, WouldChange, add, neighbouring, place
from mendflow.core.rules.history import Difference, diff, restore
from mendflow.core.rules.revision import replace_exlet, retire, set_passive, with_exlet
from mendflow.core.rules.trials import Replayed, Tried, play, try_in_place, try_rule
from mendflow.core.rules.triggers import Trigger, triggers
from mendflow.core.rules.validity import demand_valid, problems_of

__all__ = [
    "ROOTS",
    "Candidate",
    "CompiledRules",
    "Difference",
    "Draft",
    "Grown",
    "Place",
    "Replayed",
    "Tried",
    "Trigger",
    "Verdict",
    "WouldChange",
    "add",
    "candidates",
    "compiled",
    "demand_valid",
    "diff",
    "looking_into",
    "neighbouring",
    "place",
    "play",
    "problems_of",
    "replace_exlet",
    "restore",
    "retire",
    "set_passive",
    "tree_for",
    "triggers",
    "try_in_place",
    "try_rule",
    "way",
    "with_exlet",
]
