"""The engine: one case, as three functions.

    decide(case, command, now)  -> events      may refuse; changes nothing
    evolve(case, event)         -> orders      never refuses; the only place where state changes
    outstanding_orders(case)    -> orders      what the world still owes, from state alone

A command is applied by evolving its events (`evolve_new`) and writing them down, before any order is carried out; an
entry of the journal says where a long event was cut. After a crash, evolve what was written and ask what is owed.
Orders have the same serial numbers each time, so giving one twice is harmless.

Some orders are *posted*: a job that the flow does not wait for, a partner's operation without an answer, a reply. They
stay owed until FinishItem acknowledges that they were taken, even after the case has ended; nothing else follows.

Whoever holds an order back before carrying it out, to ask somebody first, asks `item_order` for it when it goes out at
last: data may have been written into it. `item_data`, `case_data` and `compensations` show a case to who mends it."""

from mendflow.core.engine.compensations import CompensationStep, compensations, undoable
from mendflow.core.engine.data import case_data
from mendflow.core.engine.decide import StaleAnswer, check_inputs, decide
from mendflow.core.engine.evolve import evolve, evolve_new
from mendflow.core.engine.outstanding_orders import (
    LiveItem,
    find_item,
    item_data,
    item_of,
    item_order,
    live_items,
    outstanding_orders,
)
from mendflow.core.engine.plan import compile_flow
from mendflow.core.engine.reopening import Reopening, Replay, plan_reopening
from mendflow.core.engine.state import Case, restore, snapshot
from mendflow.core.engine.validate import validate

__all__ = [
    "Case",
    "CompensationStep",
    "LiveItem",
    "Reopening",
    "Replay",
    "StaleAnswer",
    "case_data",
    "check_inputs",
    "compensations",
    "compile_flow",
    "decide",
    "evolve",
    "evolve_new",
    "find_item",
    "item_data",
    "item_of",
    "item_order",
    "live_items",
    "outstanding_orders",
    "plan_reopening",
    "restore",
    "snapshot",
    "undoable",
    "validate",
]
