"""A world for one case: it takes orders, answers them when told to, and can crash at any moment.

Every command goes through decide and evolve as a service would do it, and after every event the laws are checked."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from mendflow.core.engine import Case, decide, evolve, evolve_new, outstanding_orders, restore, run, snapshot, validate
from mendflow.core.engine.activities import foreach
from mendflow.core.engine.messages import (
    CallPartner,
    CancelCalledCase,
    CancelJob,
    Command,
    ContinueLater,
    Deliver,
    DropTimer,
    EndCase,
    Event,
    FinishItem,
    FireTimer,
    ItemSkipped,
    OfferTask,
    Order,
    Proceed,
    ResumeJob,
    RunPrimitive,
    SendReply,
    SetTimer,
    StageFiles,
    StartCalledCase,
    StartCase,
    SubmitJob,
    SuspendJob,
    WithdrawTask,
)
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Activity, Flow
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.templates import Template
from mendflow.core.model.values import FileRef, Value

Asking = (
    SubmitJob
    | StageFiles
    | OfferTask
    | StartCalledCase
    | CallPartner
    | SendReply
    | RunPrimitive
    | SetTimer
    | ContinueLater
)
ASKING = (
    SubmitJob,
    StageFiles,
    OfferTask,
    StartCalledCase,
    CallPartner,
    SendReply,
    RunPrimitive,
    SetTimer,
    ContinueLater,
)
TAKING_BACK = (CancelJob, CancelCalledCase, WithdrawTask, DropTimer)


@contextmanager
def pieces_of(starts: int) -> Iterator[None]:
    """Events are cut after so many starts, so that what is usual for very large flows happens in small ones."""
    with patch.object(run, "STARTS_MAX", starts), patch.object(foreach, "ITERATIONS_MAX", 1 + starts // 2):
        yield


class World:
    """`out` are the orders that wait for an answer, by serial; `given` is every order ever given."""

    def __init__(self) -> None:
        self.case = Case.blank()
        self.journal: list[Event] = []
        self.given: list[Order] = []
        self.out: dict[int, Asking] = {}
        self.asked: set[int] = set()
        self.now = 1_000

    def do(self, command: Command) -> list[Order]:
        """Give a command; all that follows from it has happened when this returns."""
        before = snapshot(self.case)
        events = decide(self.case, command, self.now)
        assert snapshot(self.case) == before, "decide changed the case"
        orders: list[Order] = []
        for event in events:
            entry, given = evolve_new(self.case, event)
            self.journal.append(entry)
            orders += given
        validate(self.case)
        for order in orders:
            self.take(order)
        self.forget()
        return orders

    def forget(self) -> None:
        """Some orders are not taken back when they are no longer needed; their answers would be refused as stale."""
        live = {order.serial for order in outstanding_orders(self.case) if isinstance(order, ASKING)}
        for serial in [serial for serial in self.out if serial not in live]:
            if isinstance(self.out[serial], (StageFiles, CallPartner, RunPrimitive, ContinueLater)):
                del self.out[serial]

    def take(self, order: Order) -> None:
        self.given.append(order)
        if isinstance(order, ASKING):
            assert order.serial not in self.asked, f"{order} has the serial of another order"
            self.asked.add(order.serial)
            self.out[order.serial] = order
        elif isinstance(order, TAKING_BACK):
            assert order.serial in self.out, f"{order} takes back what is not out"
            del self.out[order.serial]
        elif isinstance(order, (SuspendJob, ResumeJob)):
            assert isinstance(self.out[order.serial], SubmitJob)

    def finish(self, serial: int, outcome: Outcome) -> list[Order]:
        orders = self.do(FinishItem(serial=serial, outcome=outcome))
        self.out.pop(serial, None)
        return orders

    def fire(self, serial: int) -> list[Order]:
        timer = self.out[serial]
        assert isinstance(timer, SetTimer)
        self.now = max(self.now, timer.at)
        orders = self.do(FireTimer(serial=serial))
        self.out.pop(serial, None)
        return orders

    def proceed(self, serial: int) -> list[Order]:
        orders = self.do(Proceed(serial=serial))
        self.out.pop(serial, None)
        return orders

    def replayed(self) -> Case:
        case = Case.blank()
        for event in self.journal:
            evolve(case, event)
        return case

    def crash(self, *, with_snapshot: bool) -> None:
        """Lose everything but what is on disk. What is owed afterwards is what was out before."""
        fresh = restore(snapshot(self.case)) if with_snapshot else self.replayed()
        assert snapshot(fresh) == snapshot(self.case), "the replayed case is not the live one"
        assert key(outstanding_orders(fresh)) == key(outstanding_orders(self.case))
        self.case = fresh
        validate(fresh)

    def check_owed(self) -> None:
        """What the world was asked for and has not answered is exactly what the case says is owed."""
        asked = {order.serial: order for order in outstanding_orders(self.case) if isinstance(order, ASKING)}
        assert asked == self.out


def key(orders: list[Order]) -> set[str]:
    return {repr(order) for order in orders}


def flow(body: Activity, outputs: dict[str, Template] | None = None) -> Flow:
    return Flow(name=FlowName("test"), body=body, outputs=outputs or {})


def started(body: Activity, outputs: dict[str, Template] | None = None) -> "Play":
    """A case of a flow with this body, just started."""
    return Play(flow(body, outputs))


def failed(name: str = "broken", message: str = "it broke", data: Value = None) -> Outcome:
    return Outcome(fault=Fault(name=name, category=Category.JOB, message=message, data=data, exit_code=1))


def file(name: str) -> FileRef:
    return FileRef(sha256=hashlib.sha256(name.encode()).hexdigest(), bytes=3, name=name)


class Play(World):
    """A world that knows items by their names, for telling a story in a test."""

    def __init__(self, played: Flow, inputs: dict[str, Value] | None = None) -> None:
        super().__init__()
        self.do(StartCase(case=CaseId("case"), flow=played, inputs=inputs or {}))

    @property
    def status(self) -> str:
        return self.case.status

    @property
    def jobs(self) -> list[str]:
        """Items whose jobs are out, in the order of submission."""
        return [order.spec.item for order in self.out.values() if isinstance(order, SubmitJob)]

    @property
    def skipped(self) -> list[str]:
        return [order.item for order in self.given if isinstance(order, ItemSkipped)]

    @property
    def cancelled(self) -> int:
        return sum(isinstance(order, CancelJob) for order in self.given)

    @property
    def timers(self) -> list[int]:
        return [order.serial for order in self.out.values() if isinstance(order, SetTimer)]

    @property
    def ended(self) -> EndCase:
        found = [order for order in self.given if isinstance(order, EndCase)]
        assert len(found) == 1, "a case ends once"
        return found[0]

    def serial(self, item: str) -> int:
        for order in self.out.values():
            if (order.spec.item if isinstance(order, SubmitJob) else getattr(order, "item", "")) == item:
                return order.serial
        raise AssertionError(f"{item} is not out; there are {list(self.out.values())}")

    def command(self, item: str) -> str | None:
        order = self.out[self.serial(item)]
        assert isinstance(order, SubmitJob)
        return order.spec.command

    def done(self, *items: str, outputs: Value = None) -> "Play":
        """These items complete, one after the other."""
        for item in items:
            self.finish(self.serial(item), Outcome(outputs=outputs))
        return self

    def fail(self, item: str, name: str = "broken", data: Value = None) -> "Play":
        self.finish(self.serial(item), failed(name, data=data))
        return self

    def ring(self) -> "Play":
        """The timer that is due first goes off."""
        timers = [order for order in self.out.values() if isinstance(order, SetTimer)]
        self.fire(min(timers, key=lambda timer: timer.at).serial)
        return self

    def send(self, channel: str, value: Value = None, *, id: str = "", correlation: Value = None) -> "Play":
        name = id or f"m{len(self.journal)}"
        self.do(Deliver(id=name, channel=channel, value=value, correlation=correlation))
        return self

    def run_out(self, answer: Callable[[Asking], Outcome] = lambda order: Outcome()) -> "Play":
        """Answer everything, the oldest first, until the case is over or nothing is out."""
        while self.out and not self.case.over:
            serial, order = next(iter(self.out.items()))
            if isinstance(order, SetTimer):
                self.fire(serial)
            elif isinstance(order, ContinueLater):
                self.proceed(serial)
            else:
                self.finish(serial, answer(order))
        return self
