"""What all items have in common: an outstanding order with a serial number, and its result."""

from typing import ClassVar, Final, Generic, TypeVar

from msgspec.structs import replace

from mendflow.core.engine.activities.events import drop_alarms
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.data_updates import order_data
from mendflow.core.engine.elements import element_at
from mendflow.core.engine.faults import FlowFault, fault_value
from mendflow.core.engine.item_ids import item_id
from mendflow.core.engine.messages import (
    CancelCalledCase,
    CancelJob,
    ItemFailed,
    Order,
    WithdrawTask,
)
from mendflow.core.engine.plan import WORK, PlanNode, ancestors
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import CompletedItem, InstanceEnd, Item, TimedItem
from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value

EVERYTHING: Final = "*"
COMPENSATABLE: Final = WORK - {"stage"}

Withdrawal = type[CancelJob] | type[CancelCalledCase] | type[WithdrawTask]


J = TypeVar("J", bound=Item)


class ItemKind(ActivityKind[J], Generic[J]):
    """An activity that the outside world carries out. `withdrawal` is the order that cancels an outstanding order."""

    makes = Item
    withdrawal: ClassVar[Withdrawal | None] = None

    def start(self, run: Run, instance: J, /) -> None:
        instance.item = item_id(run.nodes[instance.node].shown, instance.path)
        run.index.items[instance.item] = instance.id
        self.prepare(run, instance)
        self.ask(run, instance)

    def prepare(self, run: Run, instance: J, /) -> None:
        """Evaluate everything that the item needs, once: a restart uses the same data."""

    def ask(self, run: Run, instance: J, /) -> None:
        """Issue the order, under a new serial."""
        serial = run.serial()
        assert instance.order is not None
        instance.order = replace(instance.order, serial=serial)
        self.send(run, instance, instance.order, serial)

    def send(self, run: Run, instance: J, order: Order, serial: int, /) -> None:
        instance.serial = serial
        run.index.serials[serial] = instance.id
        run.orders.append(order)

    def current_order(self, _node: PlanNode, instance: J, /) -> Order:
        """The outstanding order."""
        assert instance.order is not None
        return instance.order

    def settle(self, run: Run, instance: J, /) -> None:
        """The outstanding order has been answered."""
        del run.index.serials[instance.serial]
        run.case.written_outputs.pop(instance.serial, None)
        instance.serial = 0

    def order_finished(self, run: Run, instance: J, outcome: Outcome, /) -> None:
        self.settle(run, instance)
        if outcome.fault is not None:
            raise FlowFault(outcome.fault)
        self.succeed(run, instance, outcome)

    def succeed(self, run: Run, instance: J, outcome: Outcome, /) -> None:
        if run.case.remember:
            remember(run, instance, outcome.outputs)
        leave_result(run, instance, outcome.outputs, files_of(outcome), outcome.exit_code)
        run.end(instance, InstanceEnd.COMPLETED)

    def withdraw(self, run: Run, instance: J, /) -> None:
        """Cancel whatever is outstanding."""
        serial = instance.serial
        if serial:
            self.settle(run, instance)
            if not run.answered(serial) and self.withdrawal is not None:
                run.orders.append(self.withdrawal(serial=serial))
        if isinstance(instance, TimedItem):
            drop_alarms(run, instance)

    def close(self, run: Run, instance: J, /) -> None:
        if instance.item:
            self.withdraw(run, instance)
            del run.index.items[instance.item]
            run.case.item_holders.pop(instance.id, None)
            run.case.at_start.pop(instance.id, None)
            run.case.restarts.pop(instance.id, None)
            run.case.levels.pop(instance.id, None)

    def restart(self, run: Run, instance: J, /) -> None:
        """Start again, with the data of its first start. A restarted item runs, even if it was suspended."""
        self.withdraw(run, instance)
        instance.suspended, instance.facts = False, []
        run.case.item_holders.pop(instance.id, None)
        run.case.restarts[instance.id] = run.case.restarts.get(instance.id, 0) + 1
        self.ask(run, instance)

    def force(self, run: Run, instance: J, outputs: Value, /) -> None:
        """End it as successful, whatever it was doing."""
        self.withdraw(run, instance)
        self.succeed(run, instance, Outcome(outputs=outputs))

    def fail(self, run: Run, instance: J, fault: Fault, /) -> None:
        """End it as failed, whatever it was doing, and let the flow continue."""
        self.withdraw(run, instance)
        node = run.nodes[instance.node]
        leave_result(run, instance, None, {}, fault.exit_code)
        run.case.envs[instance.env].results[node.name].update(failed=True, fault=fault_value(fault))
        if node.kind in WORK:
            element = element_at(run.case, instance, instance.node)
            failed = ItemFailed(item=instance.item, name=node.shown, kind=node.kind, fault=fault, element=element)
            run.orders.append(failed)
        run.end(instance, InstanceEnd.FAILED)

    def suspend(self, run: Run, instance: J, /) -> None:
        """Tell the executor to suspend it, where possible."""

    def resume(self, run: Run, instance: J, /) -> None:
        """Tell the executor to resume it."""

    def wake(self, run: Run, instance: J, /) -> None:
        """The item itself is no longer suspended."""

    def pauses(self, _instance: J, /) -> list[Order]:
        """What suspends the item, to be repeated to the executor after a restart."""
        return []

    def phase(self, _instance: J, /) -> str:
        return "running"


def remember(run: Run, instance: Item, outputs: Value) -> None:
    """Record a completed item if somebody outside may undo it. What the flow itself can undo is recorded by the
    flow."""
    case, node = run.case, run.nodes[instance.node]
    if node.shown not in case.remember and EVERYTHING not in case.remember:
        return
    if node.kind not in COMPENSATABLE or any(each.compensation >= 0 for each in ancestors(run.plan, node)):
        return
    case.completions += 1
    serial = getattr(instance.order, "serial", 0)
    case.completed_items[case.completions] = CompletedItem(
        instance.node, instance.item, serial, order_data(instance.order), outputs
    )


def files_of(outcome: Outcome) -> dict[str, Value]:
    found: dict[str, Value] = {name: ref.as_value() for name, ref in outcome.files.items()}
    for name, refs in outcome.file_lists.items():
        found[name] = [ref.as_value() for ref in refs]
    return found


def leave_result(run: Run, instance: Item, outputs: Value, files: dict[str, Value], exit_code: int | None) -> None:
    result = {"outputs": outputs, "files": files, "exit_code": exit_code}
    run.case.envs[instance.env].results[run.nodes[instance.node].name] = result
