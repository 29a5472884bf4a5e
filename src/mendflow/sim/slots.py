"""Simulated slots: they use the agent's own protocol, and their jobs take virtual time.

They behave like real slots: a slot reads from the lease in shared memory when the job must be dead; it keeps results
until they are acknowledged, on disk if they took long; its job dies with it; and if it is stopped when the lease ends,
the kernel kills it a quarter of a second later."""

import asyncio
from collections import deque
from typing import Protocol

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.pilot.agent.slot_link import SlotLink
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.faults import StopReason, stop_fault
from mendflow.pilot.slot.lease import LeaseClock
from mendflow.pilot.slot.messages import (
    AttemptKey,
    FinishedAttempt,
    FrameReader,
    FromSlot,
    Heartbeat,
    SlotWork,
    ToSlot,
    frame,
)
from mendflow.pilot.slot.monitor import HEARTBEAT_MS
from mendflow.pilot.slot.process import TOO_LATE_MS
from mendflow.pilot.slot.results import SlotResults
from mendflow.pilot.slot.runner import LONG_MS
from mendflow.sim.machines import Machine, VirtualProcess

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ToSlot).decode

LINE_S = 0.0002
"""How long a message between agent and slot takes. Messages arrive in order and complete."""


class OutcomeModel(Protocol):
    """What jobs do, and who records it."""

    def begins(self, work: SlotWork, pilot: str) -> tuple[float, bool]:
        """An attempt starts: after how many seconds it ends, and whether successfully."""
        ...

    def ends(self, work: SlotWork, how: str) -> None: ...


class _Running:
    def __init__(self, work: SlotWork, began_ms: int) -> None:
        self.work = work
        self.began_ms = began_ms
        self.next_heartbeat_ms = began_ms + HEARTBEAT_MS
        self.ended: bool | None = None  # whether successful; None while it runs


class VirtualSlot:
    def __init__(
        self, machine: Machine, work_folder: WorkFolder, number: int, pilot: str, outcomes: OutcomeModel
    ) -> None:
        self.machine = machine
        self.number = number
        self.process = machine.start(f"slot-{number}")
        self.process.on_death.append(self._on_death)
        self._pilot = pilot
        self._outcomes = outcomes
        self._lease = LeaseClock(work_folder.lease)
        self._results = SlotResults(work_folder)
        self._queue: deque[SlotWork] = deque()
        self._running: _Running | None = None
        self._agent: VirtualProcess | None = None
        self._link: SlotLink | None = None
        self._frames = FrameReader()
        self._alarm: asyncio.TimerHandle | None = None
        self._job_timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None

    # the connection to the agent

    def connect(self, agent: VirtualProcess, link: SlotLink) -> None:
        """An agent has connected. Messages on this connection do not reach a later agent."""
        self._agent, self._link = agent, link
        self._frames = FrameReader()
        agent.on_death.append(lambda: self.process.deliver_after(LINE_S, self._lose_agent, link))
        link.connection_made(_AgentTransport(self, link))
        self.process.deliver_after(LINE_S, self._greet, link)

    def hears(self, link: SlotLink, data: bytes) -> None:
        self.process.deliver_after(LINE_S, self._receive, link, data)

    def _receive(self, link: SlotLink, data: bytes) -> None:
        if link is self._link:
            for encoded in self._frames.feed(data):
                self._handle(_decode(encoded))
            self._turn()

    def _send(self, message: FromSlot) -> None:
        if self._agent is not None and self._link is not None:
            self._agent.deliver_after(LINE_S, self._link.data_received, frame(_encode(message)))

    def _greet(self, link: SlotLink) -> None:
        if link is self._link:
            heartbeats = [self._heartbeat(self._running)] if self._running is not None else []
            self._send(FromSlot(done=self._results.all(), heartbeats=heartbeats, hello=True, pid=self.number + 1))
            self._turn()

    def _lose_agent(self, link: SlotLink) -> None:
        """Finish what runs, keep the results for the next agent, drop what has not started."""
        if link is self._link:
            self._agent = self._link = None
            self._queue.clear()
            self._results.store_all()
            self._turn()

    def _handle(self, message: ToSlot) -> None:
        self._queue.extend(message.run)
        for key in message.acks:
            self._results.forget((key[0], key[1]))
        for job, fence, control in message.controls:
            self._control((job, fence), control)
        if message.recall:
            self._give_back()
        if message.stop:
            self.process.kill()

    def _control(self, key: AttemptKey, control: str) -> None:
        if control not in ("cancel", "kill"):
            return
        end = StopReason.CANCELLED if control == "cancel" else StopReason.KILLED
        if self._running is not None and self._running.work.key == key:
            self._kill(end)
            return
        for work in [work for work in self._queue if work.key == key]:
            self._queue.remove(work)
            self._ended(work, _stopped(end), 1)

    # the work

    def _turn(self) -> None:
        """What a real slot does whenever it wakes up."""
        now = self.machine.boot_ms()
        running = self._running
        if running is not None and running.ended is None:
            if self._lease.is_over(now):
                self._kill(StopReason.LEASE)
            elif now >= running.next_heartbeat_ms:
                running.next_heartbeat_ms = now + HEARTBEAT_MS
                self._send(FromSlot(heartbeats=[self._heartbeat(running)]))
        if self._running is not None and self._queue and now >= self._running.began_ms + LONG_MS:
            self._give_back()
        self._advance(now)
        self._set_alarms(now)
        if self._agent is None and self._running is None and self._results.safe():
            self.process.kill()

    def _advance(self, now: int) -> None:
        if self._queue and self._lease.is_over(now):
            self._give_back()
        if self._queue and self._running is None:
            work = self._queue.popleft()
            self._running = running = _Running(work, now)
            seconds, well = self._outcomes.begins(work, self._pilot)
            loop = self.machine.loop
            self._job_timer = loop.at(loop.true_s + seconds, self._job_ends, running, well)

    def _give_back(self) -> None:
        if self._queue:
            self._send(FromSlot(returned=[work.key for work in self._queue]))
            self._queue.clear()

    def _job_ends(self, running: _Running, well: bool) -> None:
        """The job ends by itself, whether or not anybody checks."""
        if running is self._running and running.ended is None:
            running.ended = well
            self._outcomes.ends(running.work, "well" if well else "badly")
            self.process.deliver(self._reap, running)

    def _reap(self, running: _Running) -> None:
        if running is not self._running:
            return
        self._running = None
        work, ran_ms = running.work, max(1, self.machine.boot_ms() - running.began_ms)
        measures = Measurements(ran_ms=ran_ms)
        if running.ended:
            outcome = Outcome(outputs={"fence": work.fence}, exit_code=0, measures=measures)
        else:
            text = "it ended with exit code 1"
            fault = Fault(
                name="exitCode", category=Category.JOB, message=text, exit_code=1, stage=AttemptStage.EXECUTION
            )
            outcome = Outcome(fault=fault, exit_code=1, measures=measures)
        self._ended(work, outcome, ran_ms * 1000)
        self._turn()

    def _kill(self, end: StopReason) -> None:
        running = self._running
        assert running is not None
        if running.ended is None:
            self._stop_job(end.value)
            self._running = None
            self._ended(running.work, _stopped(end), max(1, self.machine.boot_ms() - running.began_ms) * 1000)

    def _stop_job(self, how: str) -> None:
        assert self._running is not None and self._job_timer is not None
        self._job_timer.cancel()
        self._outcomes.ends(self._running.work, how)

    def _ended(self, work: SlotWork, outcome: Outcome, ran_us: int) -> None:
        done = FinishedAttempt(work.job, work.fence, msgspec.Raw(_encode(outcome)), ran_us)
        self._send(FromSlot(done=[done]))
        self._results.add(done, heard=self._agent is not None)

    def _heartbeat(self, running: _Running) -> Heartbeat:
        return Heartbeat(running.work.job, running.work.fence, "running", Measurements(ran_ms=1))

    # time

    def _set_alarms(self, now: int) -> None:
        for timer in (self._alarm, self._deadline):
            if timer is not None:
                timer.cancel()
        self._alarm = self._deadline = None
        running, stop_at = self._running, self._lease.stop_at
        if running is None or running.ended is not None:
            return
        loop, machine = self.machine.loop, self.machine
        due = min(running.next_heartbeat_ms, stop_at)
        if self._queue:
            due = min(due, running.began_ms + LONG_MS)
        self._alarm = loop.at(machine.true_s(max(due, now)) + 0.0001, self.process.deliver, self._turn)
        self._deadline = loop.at(machine.true_s(stop_at + TOO_LATE_MS) + 0.0001, self._on_deadline)

    def _on_deadline(self) -> None:
        if self.process.alive:
            self.process.kill()

    def _on_death(self) -> None:
        for timer in (self._alarm, self._deadline):
            if timer is not None:
                timer.cancel()
        if self._running is not None and self._running.ended is None:
            self._stop_job("died")
            self._running = None
        if self._agent is not None and self._link is not None:
            self._agent.deliver_after(LINE_S, self._link.connection_lost, None)


class _AgentTransport(asyncio.Transport):
    """The agent's end of its connection to a slot."""

    def __init__(self, slot: VirtualSlot, link: SlotLink) -> None:
        super().__init__()
        self._slot = slot
        self._link = link

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._slot.hears(self._link, bytes(data))


def _stopped(end: StopReason) -> Outcome:
    return Outcome(fault=stop_fault(end, wall_ms=0, memory_bytes=0, peak_bytes=0))
