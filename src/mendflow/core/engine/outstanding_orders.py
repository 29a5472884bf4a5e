"""The outstanding orders of a case and its live items, from its state alone."""

from collections.abc import Iterator

import msgspec

from mendflow.core.engine.activities import KINDS
from mendflow.core.engine.activities.items import ItemKind
from mendflow.core.engine.data_updates import order_data
from mendflow.core.engine.messages import ContinueLater, EndCase, Order, SetTimer
from mendflow.core.engine.state import Case, Instance, InstancePhase, Item, PickInstance, ScopeInstance, TimedItem
from mendflow.core.model.ids import ItemId
from mendflow.core.model.values import Value


class LiveItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item that waits. `serial` is 0 if it waits only for timers or messages."""

    serial: int
    item: ItemId
    name: str
    kind: str
    phase: str
    suspended: bool


def outstanding_orders(case: Case) -> list[Order]:
    """Every order that the case still waits for, and every posted one that was not acknowledged. A suspended job is
    owed with its suspension. When the case has ended, its end is owed."""
    orders: list[Order] = list(case.posted.values())
    if case.over:
        status = case.status
        assert status in ("completed", "failed", "cancelled")
        return [*orders, EndCase(status=status, outputs=case.outputs, fault=case.fault)]
    if case.continuation:
        orders.append(ContinueLater(serial=case.continuation))
    for instance in case.instances.values():
        orders.extend(_owed_by(case, instance))
    return orders


def _owed_by(case: Case, instance: Instance) -> Iterator[Order]:
    if isinstance(instance, Item):
        node = case.plan.nodes[instance.node]
        kind = KINDS[node.kind]
        assert isinstance(kind, ItemKind)
        if instance.serial and instance.serial not in case.answered:
            yield kind.current_order(node, instance)
            if instance.suspended or case.status == "suspended":
                yield from kind.pauses(instance)
    if isinstance(instance, (TimedItem, ScopeInstance, PickInstance)):
        for serial, alarm in instance.timers.items():
            if serial not in case.answered:
                yield SetTimer(serial=serial, at=alarm.at)


def live_items(case: Case) -> Iterator[LiveItem]:
    """Every item that has started and not ended."""
    for instance in case.instances.values():
        if isinstance(instance, Item) and instance.phase is InstancePhase.RUNNING:
            yield _live(case, instance)


def find_item(case: Case, item: ItemId) -> LiveItem | None:
    """The live item with that id."""
    found = case.instances.get(case.index.items.get(item, 0))
    return _live(case, found) if isinstance(found, Item) else None


def item_of(case: Case, serial: int) -> Item | None:
    """The item that an order with this serial belongs to, while it lives."""
    found = case.instances.get(case.index.serials.get(serial, 0))
    return found if isinstance(found, Item) else None


def item_order(case: Case, serial: int) -> Order | None:
    """The current order under this serial: its data may have changed since it was issued. None if it is no longer
    outstanding."""
    if serial in case.posted:
        return case.posted[serial]
    found = item_of(case, serial)
    if found is None or found.serial != serial or serial in case.answered:
        return None
    node = case.plan.nodes[found.node]
    kind = KINDS[node.kind]
    assert isinstance(kind, ItemKind)
    return kind.current_order(node, found)


def item_data(case: Case, item: ItemId) -> dict[str, Value]:
    """The current data of a live item; empty for others."""
    found = case.instances.get(case.index.items.get(item, 0))
    return order_data(found.order) if isinstance(found, Item) else {}


def _live(case: Case, instance: Item) -> LiveItem:
    node = case.plan.nodes[instance.node]
    kind = KINDS[node.kind]
    assert isinstance(kind, ItemKind)
    return LiveItem(
        serial=instance.serial,
        item=instance.item,
        name=node.shown,
        kind=node.kind,
        phase=kind.phase(instance),
        suspended=instance.suspended or case.status == "suspended",
    )
