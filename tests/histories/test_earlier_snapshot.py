"""A snapshot that the engine wrote before exlets could steer cases is read, owes what it owed then, and goes on.

It holds a live instance of each kind, an item and a case that somebody suspended, and facts that both keep."""

import base64
import json

import msgspec

from mendflow.core.engine import case_data, compensations, live_items, outstanding_orders, restore, snapshot, validate
from mendflow.core.engine.messages import MarkCompensated, RemoveItem, RestartItem, Resume, Suspend, WriteData
from mendflow.core.engine.state import Case
from mendflow.core.model.ids import ItemId
from tests.core.engine.world import World
from tests.histories.history import FOLDER, in_order

KEPT = json.loads((FOLDER / "earlier.snapshot.json").read_text())


def earlier() -> Case:
    return restore(base64.b64decode(KEPT["snapshot"]))


def test_it_owes_what_it_owed_then() -> None:
    case = earlier()
    validate(case)
    assert msgspec.to_builtins(in_order(case)) == KEPT["owed"]
    assert snapshot(restore(snapshot(case))) == snapshot(case)


def test_it_can_be_steered_from_there() -> None:
    world = World()
    world.case = earlier()
    for order in outstanding_orders(world.case):
        world.take(order)
    held = ItemId("held")
    world.do(WriteData(values={"note": "mended"}, by="x/1"))
    world.do(Suspend(holder="x", by="x/2"))
    world.do(Resume(holder="x", by="x/3"))
    assert world.case.status == "suspended", "the person of then still holds it"
    assert [(each.name, each.number) for each in compensations(world.case)] == [("undoable", 1)]
    world.do(Resume())
    assert {each.item for each in live_items(world.case) if each.suspended} == {held}
    world.do(Resume(item=held))
    assert {"next", "linked", "turn[2]"} <= {each.item for each in live_items(world.case)}
    world.do(MarkCompensated(numbers=tuple(each.number for each in compensations(world.case))))
    for item in ("c1", "staged", "ask"):
        world.case = restore(snapshot(world.case))
        world.do(RestartItem(item=ItemId(item), by=f"x/{item}"))
        world.do(RemoveItem(item=ItemId(item), by=f"x/{item}"))
    assert case_data(world.case) == {"note": "mended"}
