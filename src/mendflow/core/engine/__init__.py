"""The engine: one case, as three functions.

    decide(case, command, now)  -> events      may refuse; changes nothing
    evolve(case, event)         -> orders      never refuses; the only place where state changes
    owed(case)                  -> orders      what the world still owes, from state alone

A command is applied by writing its events down and only then evolving them; after a crash, evolve what was written and
ask what is owed. Orders have the same serial numbers each time, so giving one twice is harmless.

Some orders are *posted*: a job that the flow does not wait for, a partner's operation without an answer, a reply. They
stay owed until FinishItem acknowledges that they were taken, even after the case has ended; nothing else follows."""

from mendflow.core.engine.decide import Stale, check_inputs, decide
from mendflow.core.engine.evolve import evolve
from mendflow.core.engine.owed import LiveItem, find_item, live_items, owed
from mendflow.core.engine.plan import compile_flow
from mendflow.core.engine.state import Case, restore, snapshot
from mendflow.core.engine.validate import validate

__all__ = [
    "Case",
    "LiveItem",
    "Stale",
    "check_inputs",
    "compile_flow",
    "decide",
    "evolve",
    "find_item",
    "live_items",
    "owed",
    "restore",
    "snapshot",
    "validate",
]
