"""Slots without processes: they speak the agent's own protocol, and their jobs take virtual time.

What holds for a real slot holds here: it needs nobody to do right by its job. It knows from the mapped lease when the
job must be dead; its results wait for a verdict, on disk if they took long; when it dies its job dies with it; and when
it stands still while the lease ends, the kernel kills it a quarter of a second later."""

import asyncio
from collections import deque
from typing import Protocol

import msgspec

from mendflow.core.model.faults import Category, Fault, Stage
from mendflow.core.model.jobs import Measures, Outcome
from mendflow.pilot.bench import LONG_MS
from mendflow.pilot.home import Home
from mendflow.pilot.lease import LeaseClock
from mendflow.pilot.results import Results
from mendflow.pilot.slot import TOO_LATE_MS
from mendflow.pilot.slots import SlotLink
from mendflow.pilot.verdicts import End, stopped
from mendflow.pilot.watch import PULSE_MS
from mendflow.pilot.wire import AttemptKey, Done, Frames, FromSlot, Pulse, ToSlot, Work, frame
from mendflow.sim.machines import Machine, Process

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ToSlot).decode

LINE_S = 0.0002
"""How long a message between agent and slot takes. It arrives in order, and whole."""


class Nature(Protocol):
    """What becomes of jobs, and who takes note of it."""

    def begins(self, work: Work, pilot: str) -> tuple[float, bool]:
        """An attempt begins: in how many seconds it will end, and whether well."""
        ...

    def ends(self, work: Work, how: str) -> None: ...


class _Running:
    def __init__(self, work: Work, began_ms: int) -> None:
        self.work = work
        self.began_ms = began_ms
        self.next_pulse_ms = began_ms + PULSE_MS
        self.ended: bool | None = None  # whether well; None while it runs


class VirtualSlot:
    def __init__(self, machine: Machine, home: Home, number: int, pilot: str, nature: Nature) -> None:
        self.machine = machine
        self.number = number
        self.process = machine.start(f"slot-{number}")
        self.process.lost.append(self._died)
        self._pilot = pilot
        self._nature = nature
        self._lease = LeaseClock(home.lease)
        self._results = Results(home)
        self._queue: deque[Work] = deque()
        self._running: _Running | None = None
        self._agent: Process | None = None
        self._link: SlotLink | None = None
        self._frames = Frames()
        self._alarm: asyncio.TimerHandle | None = None
        self._job_timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None

    # the line to the agent

    def connect(self, agent: Process, link: SlotLink) -> None:
        """An agent is there. What is said on this line is not heard by a later one."""
        self._agent, self._link = agent, link
        self._frames = Frames()
        agent.lost.append(lambda: self.process.later(LINE_S, self._lose_agent, link))
        link.connection_made(_End(self, link))
        self.process.later(LINE_S, self._greet, link)

    def hears(self, link: SlotLink, data: bytes) -> None:
        self.process.later(LINE_S, self._receive, link, data)

    def _receive(self, link: SlotLink, data: bytes) -> None:
        if link is self._link:
            for encoded in self._frames.feed(data):
                self._obey(_decode(encoded))
            self._turn()

    def _say(self, message: FromSlot) -> None:
        if self._agent is not None and self._link is not None:
            self._agent.later(LINE_S, self._link.data_received, frame(_encode(message)))

    def _greet(self, link: SlotLink) -> None:
        if link is self._link:
            pulses = [self._pulse(self._running)] if self._running is not None else []
            self._say(FromSlot(done=self._results.all(), pulses=pulses, hello=True, pid=self.number + 1))
            self._turn()

    def _lose_agent(self, link: SlotLink) -> None:
        """Finish what runs, keep the results for the next agent, drop what has not begun."""
        if link is self._link:
            self._agent = self._link = None
            self._queue.clear()
            self._results.store_all()
            self._turn()

    def _obey(self, message: ToSlot) -> None:
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
        end = End.CANCELLED if control == "cancel" else End.KILLED
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
            if self._lease.over(now):
                self._kill(End.LEASE)
            elif now >= running.next_pulse_ms:
                running.next_pulse_ms = now + PULSE_MS
                self._say(FromSlot(pulses=[self._pulse(running)]))
        if self._running is not None and self._queue and now >= self._running.began_ms + LONG_MS:
            self._give_back()
        self._advance(now)
        self._set_alarms(now)
        if self._agent is None and self._running is None and self._results.safe():
            self.process.kill()

    def _advance(self, now: int) -> None:
        if self._queue and self._lease.over(now):
            self._give_back()
        if self._queue and self._running is None:
            work = self._queue.popleft()
            self._running = running = _Running(work, now)
            seconds, well = self._nature.begins(work, self._pilot)
            loop = self.machine.loop
            self._job_timer = loop.at(loop.true_s + seconds, self._job_ends, running, well)

    def _give_back(self) -> None:
        if self._queue:
            self._say(FromSlot(returned=[work.key for work in self._queue]))
            self._queue.clear()

    def _job_ends(self, running: _Running, well: bool) -> None:
        """By itself, whether or not anybody looks."""
        if running is self._running and running.ended is None:
            running.ended = well
            self._nature.ends(running.work, "well" if well else "badly")
            self.process.soon(self._reap, running)

    def _reap(self, running: _Running) -> None:
        if running is not self._running:
            return
        self._running = None
        work, ran_ms = running.work, max(1, self.machine.boot_ms() - running.began_ms)
        measures = Measures(ran_ms=ran_ms)
        if running.ended:
            outcome = Outcome(outputs={"fence": work.fence}, exit_code=0, measures=measures)
        else:
            text = "it ended with exit code 1"
            fault = Fault(name="exitCode", category=Category.JOB, message=text, exit_code=1, stage=Stage.EXECUTION)
            outcome = Outcome(fault=fault, exit_code=1, measures=measures)
        self._ended(work, outcome, ran_ms * 1000)
        self._turn()

    def _kill(self, end: End) -> None:
        running = self._running
        assert running is not None
        if running.ended is None:
            self._stop_job(end.value)
            self._running = None
            self._ended(running.work, _stopped(end), max(1, self.machine.boot_ms() - running.began_ms) * 1000)

    def _stop_job(self, how: str) -> None:
        assert self._running is not None and self._job_timer is not None
        self._job_timer.cancel()
        self._nature.ends(self._running.work, how)

    def _ended(self, work: Work, outcome: Outcome, ran_us: int) -> None:
        done = Done(work.job, work.fence, msgspec.Raw(_encode(outcome)), ran_us)
        self._say(FromSlot(done=[done]))
        self._results.add(done, heard=self._agent is not None)

    def _pulse(self, running: _Running) -> Pulse:
        return Pulse(running.work.job, running.work.fence, "running", Measures(ran_ms=1))

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
        due = min(running.next_pulse_ms, stop_at)
        if self._queue:
            due = min(due, running.began_ms + LONG_MS)
        self._alarm = loop.at(machine.true_s(max(due, now)) + 0.0001, self.process.soon, self._turn)
        self._deadline = loop.at(machine.true_s(stop_at + TOO_LATE_MS) + 0.0001, self._too_late)

    def _too_late(self) -> None:
        if self.process.alive:
            self.process.kill()

    def _died(self) -> None:
        for timer in (self._alarm, self._deadline):
            if timer is not None:
                timer.cancel()
        if self._running is not None and self._running.ended is None:
            self._stop_job("died")
            self._running = None
        if self._agent is not None and self._link is not None:
            self._agent.later(LINE_S, self._link.connection_lost, None)


class _End(asyncio.Transport):
    """The agent's end of its line to a slot."""

    def __init__(self, slot: VirtualSlot, link: SlotLink) -> None:
        super().__init__()
        self._slot = slot
        self._link = link

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._slot.hears(self._link, bytes(data))


def _stopped(end: End) -> Outcome:
    return Outcome(fault=stopped(end, wall_ms=0, memory_bytes=0, peak_bytes=0))
