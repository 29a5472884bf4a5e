"""Random flows in a random world: whatever happens, the engine keeps its laws."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.engine import Case, decide, evolve, live_items, outstanding_orders, restore, snapshot, validate
from mendflow.core.engine.messages import (
    Cancel,
    Command,
    ContinueLater,
    Deliver,
    EndCase,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    Proceed,
    RemoveItem,
    RestartItem,
    Resume,
    SetTimer,
    StageFiles,
    StartCase,
    SubmitJob,
    Suspend,
)
from mendflow.core.model.errors import RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Outcome, Submission
from tests.core.engine.random_flows import random_flow
from tests.core.engine.world import ASKING, World, failed, file, pieces_of
from tests.examples import examples

STEPS_MAX = 3_000
RESTORED_STEPS = 60
PATIENCE = 1_000


class Chaos(World):
    """A world that answers in any order, fails things, interferes, and crashes; after a while it only answers."""

    def __init__(self, flow: Flow, random: Random, remember: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.random = random
        self.messages = 0
        self.answers = 0
        self.do(StartCase(case=CaseId("c"), flow=flow, remember=remember))

    def answer(self) -> None:
        """Answer one order, or send a message that somebody waits for."""
        if self.case.over:
            return
        if self.case.status == "suspended" and self.random.random() < 0.5:
            self.do(Resume())
            return
        self.answers += 1
        choices = [*self.out]
        if self.answers > PATIENCE:  # an alarm that repeats faster than the work goes on would keep the case for ever
            choices = [serial for serial in choices if not isinstance(self.out[serial], SetTimer)] or choices
        if not choices or (self.wanted() and self.random.random() < 0.3):
            self.send()
            return
        if self.case.continuation and len(self.case.backlog) > 20:
            self.proceed(self.case.continuation)
            return
        # Mostly the oldest: a world that keeps somebody waiting for ever need not see the case end.
        serial = choices[0] if self.random.random() < 0.6 else self.random.choice(choices)
        order = self.out[serial]
        if isinstance(order, SetTimer):
            self.fire(serial)
        elif isinstance(order, ContinueLater):
            self.proceed(serial)
        elif self.random.random() < 0.08:
            self.finish(serial, failed(self.random.choice("xyzw")))
        elif isinstance(order, StageFiles):
            self.finish(serial, Outcome(files={name: file(name) for name in order.files}))
        else:
            self.finish(serial, Outcome(outputs={"n": serial}))

    def wanted(self) -> list[str]:
        """Channels to send to. Event handlers would take messages without end; they get only some."""
        return [channel for channel in self.case.listeners if channel != "ev" or self.messages < 5]

    def send(self) -> None:
        channels = self.wanted() or sorted(self.case.plan.channels)
        if not channels:
            return
        self.messages += 1
        channel = self.random.choice(channels)
        wanted = [int(key) for key in self.case.listeners.get(channel, {}) if key]
        correlation = self.random.choice(wanted or [1])
        self.do(Deliver(id=f"m{self.messages}", channel=channel, value=self.messages, correlation=correlation))

    def interfere(self) -> None:
        """Do something that nobody asked for."""
        items = [each.item for each in live_items(self.case)] or [ItemId("nobody")]
        item = self.random.choice(items)
        fault = Fault(name="x", category=Category.JOB, message="forced")
        commands: list[Command] = [
            Suspend(),
            Resume(),
            Suspend(item=item),
            Resume(item=item),
            RestartItem(item=item),
            ForceComplete(item=item, outputs=7),
            ForceFail(item=item, fault=fault),
            RemoveItem(item=item),
            FinishItem(serial=self.random.randint(0, self.case.last_serial + 2), outcome=Outcome()),
            FireTimer(serial=self.random.randint(0, self.case.last_serial + 2)),
            Proceed(serial=self.random.randint(0, self.case.last_serial + 2)),
            Deliver(id="again", channel="a", correlation=1),
        ]
        if self.random.random() < 0.02:
            commands = [Cancel(reason="enough")]
        self.attempt(self.random.choice(commands))

    def attempt(self, command: Command) -> None:
        """Give a command that may well be refused; then nothing has changed."""
        before = snapshot(self.case)
        try:
            self.do(command)
        except RequestError as mistake:
            assert str(mistake)
            assert snapshot(self.case) == before
            return
        if isinstance(command, (FinishItem, FireTimer, Proceed)):
            self.out.pop(command.serial, None)

    def live(self, interference: int) -> None:
        """Live the case to its end."""
        for step in range(STEPS_MAX):
            if self.case.over:
                return
            dice = self.random.random()
            if step < interference and dice < 0.3:
                self.interfere()
            elif step < interference and dice < 0.4:
                self.crash(with_snapshot=self.random.random() < 0.5)
            else:
                self.wake()
                self.answer()
            self.check_owed()
        raise AssertionError("the case does not end")

    def wake(self) -> None:
        """Nothing stays suspended for ever."""
        for each in list(live_items(self.case)):
            if self.case.status == "running" and each.suspended and self.random.random() < 0.5:
                self.do(Resume(item=each.item))
                return


@given(st.integers(0, 2**32), st.integers(0, 60), st.sampled_from((1, 2, 5, 500)))
def test_any_case_ends_and_its_replay_is_the_same_case(seed: int, interference: int, starts: int) -> None:
    random = Random(seed)
    with pieces_of(starts):
        world = Chaos(random_flow(random), random)
        world.live(interference)
        world.crash(with_snapshot=False)
        world.crash(with_snapshot=True)
    left = [order for order in outstanding_orders(world.case) if isinstance(order, ASKING)]
    assert {order.serial for order in left} == set(world.case.posted)
    assert sum(isinstance(order, EndCase) for order in outstanding_orders(world.case)) == 1
    for order in left:
        assert not isinstance(order, SubmitJob) or order.spec.submission is Submission.FORGET
        world.finish(order.serial, Outcome())
    assert [order for order in outstanding_orders(world.case) if isinstance(order, ASKING)] == []


@given(st.integers(0, 2**32), st.sampled_from((1, 3, 500)))
def test_a_restored_case_goes_on_as_the_original_does(seed: int, starts: int) -> None:
    random = Random(seed)
    with pieces_of(starts):
        world = Chaos(random_flow(random), random)
        twin: Case = Case.blank()
        done = 0
        for step in range(STEPS_MAX):
            if world.case.over:
                break
            world.wake()
            world.answer()
            for event in world.journal[done:]:
                evolve(twin, event)
            done = len(world.journal)
            # After each of the first steps, and of a long life after some of the later ones: the cost is the state's.
            if step < RESTORED_STEPS or step % RESTORED_STEPS == 0 or world.case.over:
                twin = restore(snapshot(twin))
                validate(twin)
                assert snapshot(twin) == snapshot(world.case)
        assert world.case.over, "the case does not end"


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32))
def test_a_case_before_its_start_takes_nothing_but_a_start(seed: int) -> None:
    case, random = Case.blank(), Random(seed)
    world = Chaos(random_flow(random), random)
    for command in (Cancel(), Suspend(), Deliver(id="m", channel="c"), FinishItem(serial=1, outcome=Outcome())):
        with pytest.raises(RequestError):
            decide(case, command, 1)
    with pytest.raises(RequestError):
        decide(world.case, StartCase(case=CaseId("c"), flow=random_flow(random)), 1)
    assert snapshot(case) == snapshot(Case.blank())
