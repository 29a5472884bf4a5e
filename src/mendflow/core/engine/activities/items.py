"""What all items have in common: an order that is out under a serial number, and what becomes of it."""

from typing import ClassVar, Generic, TypeVar

from msgspec.structs import replace

from mendflow.core.engine.activities.events import drop_alarms
from mendflow.core.engine.faults import Thrown
from mendflow.core.engine.messages import (
    CancelCalled,
    CancelJob,
    Order,
    WithdrawTask,
)
from mendflow.core.engine.plan import PlanNode
from mendflow.core.engine.run import ActivityKind, Run, item_id
from mendflow.core.engine.state import End, Item, TimedItem
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value

Withdrawal = type[CancelJob] | type[CancelCalled] | type[WithdrawTask]


J = TypeVar("J", bound=Item)


class ItemKind(ActivityKind[J], Generic[J]):
    """An activity that is the world's to do. `withdrawal` is the order that takes back an order which is out."""

    makes = Item
    withdrawal: ClassVar[Withdrawal | None] = None

    def start(self, run: Run, instance: J, /) -> None:
        instance.item = item_id(run.nodes[instance.node].shown, instance.path)
        run.index.items[instance.item] = instance.id
        self.prepare(run, instance)
        self.ask(run, instance)

    def prepare(self, run: Run, instance: J, /) -> None:
        """Work out everything that the item needs, once: a restart asks again with the same data."""

    def ask(self, run: Run, instance: J, /) -> None:
        """Give the order, under a new serial."""
        serial = run.serial()
        assert instance.order is not None
        instance.order = replace(instance.order, serial=serial)
        self.send(run, instance, instance.order, serial)

    def send(self, run: Run, instance: J, order: Order, serial: int, /) -> None:
        instance.serial = serial
        run.index.serials[serial] = instance.id
        run.orders.append(order)

    def out(self, _node: PlanNode, instance: J, /) -> Order:
        """The order that is out."""
        assert instance.order is not None
        return instance.order

    def settle(self, run: Run, instance: J, /) -> None:
        """The order that is out has been answered."""
        del run.index.serials[instance.serial]
        instance.serial = 0

    def finished(self, run: Run, instance: J, outcome: Outcome, /) -> None:
        self.settle(run, instance)
        if outcome.fault is not None:
            raise Thrown(outcome.fault)
        self.succeed(run, instance, outcome)

    def succeed(self, run: Run, instance: J, outcome: Outcome, /) -> None:
        leave_result(run, instance, outcome.outputs, files_of(outcome), outcome.exit_code)
        run.end(instance, End.COMPLETED)

    def withdraw(self, run: Run, instance: J, /) -> None:
        """Take back whatever is out."""
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

    def restart(self, run: Run, instance: J, /) -> None:
        """Begin again, with the data of its start. A restarted item runs, even if it was suspended."""
        self.withdraw(run, instance)
        instance.suspended, instance.facts = False, []
        self.ask(run, instance)

    def force(self, run: Run, instance: J, outputs: Value, /) -> None:
        """End it well, whatever it was doing."""
        self.withdraw(run, instance)
        self.succeed(run, instance, Outcome(outputs=outputs))

    def suspend(self, run: Run, instance: J, /) -> None:
        """Tell the world to hold still, where it can."""

    def resume(self, run: Run, instance: J, /) -> None:
        """Tell the world to go on."""

    def wake(self, run: Run, instance: J, /) -> None:
        """The item itself is suspended no more."""

    def pauses(self, _instance: J, /) -> list[Order]:
        """What keeps the item still, for those who must be told again."""
        return []

    def phase(self, _instance: J, /) -> str:
        return "running"


def files_of(outcome: Outcome) -> dict[str, Value]:
    return {name: ref.as_value() for name, ref in outcome.files.items()} if outcome.files else {}


def leave_result(run: Run, instance: Item, outputs: Value, files: dict[str, Value], exit_code: int | None) -> None:
    result = {"outputs": outputs, "files": files, "exit_code": exit_code}
    run.case.envs[instance.env].results[run.nodes[instance.node].name] = result
