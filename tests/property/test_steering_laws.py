"""Random flows that exlets steer, with commands given again and crashes in between: law 5 (the same state from the same
journal) and law 6 (nothing is undone twice) hold, and a removed path runs nothing more."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.engine import case_data, compensations, decide, item_order, live_items, outstanding_orders, snapshot
from mendflow.core.engine.item_ids import item_id
from mendflow.core.engine.messages import (
    CallPartner,
    Cancel,
    Command,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    MarkCompensated,
    OfferTask,
    Order,
    RemoveItem,
    RestartItem,
    Resume,
    StageFiles,
    StartCalledCase,
    SubmitJob,
    Suspend,
    WriteData,
)
from mendflow.core.engine.plan import Plan, PlanNode
from mendflow.core.engine.state import Instance, Item
from mendflow.core.model.errors import RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import Outcome
from tests.core.engine.random_flows import random_flow
from tests.core.engine.world import pieces_of
from tests.examples import examples
from tests.property.test_engine_laws import Chaos

FAULT = Fault(name="x", category=Category.JOB, message="forced")
HOLDERS = ("", "x", "y")
NAMED = (SubmitJob, StageFiles, OfferTask, StartCalledCase, CallPartner)


class Dead:
    """Places where nothing may start any more: activities by name, in turns that begin like this; of a loop, only the
    turns after one."""

    def __init__(self, names: set[str], path: str, after: int = -1) -> None:
        self.names = names
        self.path = path
        self.after = after

    def covers(self, name: str, path: str) -> bool:
        if name not in self.names:
            return False
        turns, mine = (each.split(",") if each else [] for each in (path, self.path))
        if turns[: len(mine)] != mine:
            return False
        return self.after < 0 or (len(turns) > len(mine) and int(turns[len(mine)]) > self.after)


def names_below(plan: Plan, index: int) -> set[str]:
    """Everything at or below a node, handlers included."""
    found, pending = set(), [index]
    while pending:
        node = plan.nodes[pending.pop()]
        found.add(node.shown)
        pending += [*node.children, *node.catches, *node.messages, *node.alarms]
        pending += [each for each in (node.compensation, node.termination) if each >= 0]
    return found


def is_one_path(node: PlanNode, place: PlanNode) -> bool:
    """Whether a node is, by the flow alone, on the same path as the part of it that is meant."""
    if node.kind == "parallel":
        return len(node.children) == 1
    if node.kind == "choose":
        return not node.activity.many
    if node.kind == "scope":
        return place.kind == "catch" or place.index in node.children
    return node.kind in ("flow", "pick", "catch")


class Steered(Chaos):
    """A world in which exlets steer, each of their steps perhaps more than once."""

    def __init__(self, flow: Flow, random: Random, remember: tuple[str, ...] = ()) -> None:
        self.dead: list[Dead] = []
        self.given_before: list[Command] = []
        self.steps = 0
        super().__init__(flow, random, remember)

    def take(self, order: Order) -> None:
        super().take(order)
        if isinstance(order, NAMED):
            item = order.spec.item if isinstance(order, SubmitJob) else order.item
            name, _, path = item.removesuffix("]").partition("[")
            assert not any(each.covers(name, path) for each in self.dead), f"{item} runs on a path that is dead"

    def interfere(self) -> None:
        if self.given_before and self.random.random() < 0.3:
            self.again(self.random.choice(self.given_before[-20:]))
            return
        self.steps += 1
        command = self.any_command(f"exlet/{self.steps}")
        if isinstance(command, RemoveItem) and self.case.status == "running" and not self.case.facts:
            self.bury(command.item)
        self.attempt(command)
        for order in outstanding_orders(self.case):
            if isinstance(order, NAMED) and order.serial in self.out:
                assert item_order(self.case, order.serial) == order
                self.out[order.serial] = order

    def any_command(self, by: str) -> Command:
        item = self.random.choice([each.item for each in live_items(self.case)] or [ItemId("nobody")])
        holder = self.random.choice(HOLDERS)
        numbers = [each.number for each in compensations(self.case)]
        commands: list[Command] = [
            Suspend(holder=holder, by=by),
            Resume(holder=holder, by=by),
            Suspend(item=item, holder=holder, by=by),
            Resume(item=item, holder=holder, by=by),
            Resume(item=item, holder=holder),
            RestartItem(item=item, by=by),
            RestartItem(item=item, values={"w": self.steps}, by=by),
            ForceComplete(item=item, outputs=7, by=by),
            ForceFail(item=item, fault=FAULT, by=by),
            ForceFail(item=item, fault=FAULT, proceed=True, by=by),
            RemoveItem(item=item, by=by),
            RemoveItem(item=item, by=by),
            WriteData(values={"v": self.steps}, by=by),
            WriteData(values={"v": self.steps}, item=item, held=self.random.random() < 0.5, by=by),
            MarkCompensated(numbers=tuple(numbers[-1:]), by=by),
        ]
        return Cancel(by=by) if self.random.random() < 0.02 else self.random.choice(commands)

    def attempt(self, command: Command) -> None:
        taken = len(self.journal)
        undone = command.numbers if isinstance(command, MarkCompensated) else ()
        if undone and not self.case.over:
            self.bury_compensation(undone[0])
        super().attempt(command)
        if len(self.journal) > taken and getattr(command, "by", None):
            self.given_before.append(command)

    def again(self, command: Command) -> None:
        """The same step gives the same command again: that is no event."""
        before = snapshot(self.case)
        assert decide(self.case, command, self.now) == []
        assert snapshot(self.case) == before

    def bury(self, item: ItemId) -> None:
        """What may not run once this item is removed, from the flow alone: later parts of sequences and later turns, up
        to where there are paths beside."""
        plan, live = self.case.plan, self.case.instances
        found = live.get(self.case.index.items.get(item, 0))
        if not isinstance(found, Item):
            return
        child: Instance = found
        while child.parent:
            parent = live[child.parent]
            node, place = plan.nodes[parent.node], plan.nodes[child.node]
            if node.kind == "sequence":
                for part in node.children[node.children.index(place.index) + 1 :]:
                    self.dead.append(Dead(names_below(plan, part), parent.path))
            elif node.kind in ("while", "until") or (node.kind == "for-each" and not node.activity.parallel):
                turn = int(child.path.rpartition(",")[2])
                self.dead.append(Dead(names_below(plan, place.index), parent.path, turn))
            elif not is_one_path(node, place):
                return
            child = parent

    def bury_compensation(self, number: int) -> None:
        (meant,) = (each for each in compensations(self.case) if each.number == number)
        if meant.flow is None:
            return
        (node,) = (each for each in self.case.plan.nodes if each.kind == "scope" and each.shown == meant.name)
        path = meant.item.removesuffix("]").partition("[")[2]
        assert item_id(node.shown, path) == meant.item
        self.dead.append(Dead(names_below(self.case.plan, node.compensation), path))


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from((1, 2, 5, 500)))
def test_a_steered_case_ends_and_its_replay_is_the_same_case(seed: int, interference: int, starts: int) -> None:
    random = Random(seed)
    with pieces_of(starts):
        world = Steered(random_flow(random), random)
        world.live(interference)
        world.crash(with_snapshot=False)
        world.crash(with_snapshot=True)
    for command in world.given_before[-50:]:
        world.again(command)
    assert compensations(world.case) == []
    assert case_data(world.case) is not None


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32))
def test_what_is_listed_to_be_undone_is_in_the_order_of_completion_and_leaves_the_list_once(seed: int) -> None:
    random = Random(seed)
    world = Steered(random_flow(random), random, remember=("*",))
    marked: set[int] = set()
    for _ in range(60):
        if world.case.over:
            break
        world.wake()
        world.answer()
        listed = [each.number for each in compensations(world.case)]
        assert listed == sorted(set(listed)) and not marked & set(listed)
        assert all(0 < number <= world.case.completions for number in listed)
        if listed and random.random() < 0.3:
            world.do(MarkCompensated(numbers=(listed[-1],), by=f"x/{len(marked)}"))
            marked.add(listed[-1])
            world.crash(with_snapshot=random.random() < 0.5)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32))
def test_a_stale_answer_after_steering_is_refused_and_changes_nothing(seed: int) -> None:
    random = Random(seed)
    world = Steered(random_flow(random), random)
    for _ in range(15):
        if not world.case.over:
            world.interfere()
    for serial in world.asked - set(world.out):
        for command in (FinishItem(serial=serial, outcome=Outcome()), FireTimer(serial=serial)):
            before = snapshot(world.case)
            try:
                assert decide(world.case, command, world.now), "a posted order may still be acknowledged"
            except RequestError:
                assert snapshot(world.case) == before
