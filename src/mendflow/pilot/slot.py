"""A slot: the process that owns one running attempt, and outlives the agent that gave it.

It needs nobody to do right by its job: it knows from the mapped lease when the job must be dead, keeps the result until
an agent says that the server has judged it, and ends by itself when there is neither an agent nor a job."""

import os
import select
import signal
import socket
import sys
from pathlib import Path

from mendflow.pilot.bench import Bench
from mendflow.pilot.deadline import Deadline
from mendflow.pilot.home import Home
from mendflow.pilot.lease import LeaseClock, boot_ms
from mendflow.pilot.line import AgentLine
from mendflow.pilot.processes import become_reaper
from mendflow.pilot.results import Results
from mendflow.pilot.watch import now_ms
from mendflow.pilot.wire import Done, FromSlot, Pulse, ToSlot, Work

FIRST_AGENT_MS = 10_000
ALONE_LOOK_MS = 500
TOO_LATE_MS = 250
"""How long after the job ought to be dead its slot can only be standing still; the server waits for longer."""

LULL_MS = 25
"""When nothing has run for so long, there is nothing that the kernel need end."""

KEEP_UNSAVED_MS = 3_600_000
"""How long after the lease a slot waits with a result that it cannot write: the server may have been away too."""


class Slot:
    def __init__(self, home: Home, number: int, listener: socket.socket, *, keep: bool) -> None:
        self._lease = LeaseClock(home.lease)
        self._poll = select.poll()
        self._line = AgentLine(listener, self._poll)
        self._results = Results(home)
        self._bench = Bench(
            home, number, self._poll, self._lease, keep=keep, ended=self._ended, give_back=self._give_back
        )
        self._told_tail = ""
        self._over = False
        self._deadline = Deadline()
        self._wake, self._wake_write = socket.socketpair()
        self._born = self._busy_at = now_ms()

    # the loop

    def serve(self) -> None:
        for end in (self._wake, self._wake_write):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._told_to_end())
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        self._poll.register(self._wake, select.POLLIN)
        bench = self._bench
        while not self._over:
            for descriptor, event in self._poll.poll(self._timeout()):
                self._handle(descriptor, event)
            if bench.look():
                self._line.pulse(self._pulse())
            self._set_deadline()
            bench.advance()
            self._line.tell(gather=bool(bench.queue))
            if bench.watch is None and bench.has_spare:
                self._deadline.lift()  # tidying may take long, and nothing depends on it: the result is told
                bench.remove_spare()
            self._over |= self._needless()
        self._line.close()
        bench.reaper.kill_below()

    def _set_deadline(self) -> None:
        """Should this process stand still while the lease ends, the kernel ends it, and with it the job. While it does
        not, it sees to that by itself. Set before a job begins. For one job after another that costs nothing: it is
        lifted when nothing has come for a while."""
        stop_at, busy = self._lease.stop_at, self._bench.watch is not None or bool(self._bench.queue)
        if busy:
            self._busy_at = now_ms()
        if boot_ms() >= stop_at or (not busy and now_ms() >= self._busy_at + LULL_MS):
            self._deadline.lift()
        elif busy or self._deadline.at:
            self._deadline.move(stop_at + TOO_LATE_MS)

    def _needless(self) -> bool:
        """Neither an agent nor a job, nor a result that only this process knows: with that it waits until it can be
        written or an agent comes, though not for ever, since others will have the job some day."""
        met = self._line.ever or now_ms() > self._born + FIRST_AGENT_MS
        if not met or self._line.there or self._bench.watch is not None:
            return False
        return self._results.safe() or boot_ms() > self._lease.stop_at + KEEP_UNSAVED_MS

    def _told_to_end(self) -> None:
        """A batch system that ends a pilot tells each of its processes. The agent is told too, and it is for the agent
        to end the slots, when jobs have had their time and the server knows; a slot that has none ends by itself."""
        self._bench.told()
        if not self._line.there:
            self._stop()

    def _stop(self) -> None:
        self._over = True

    def _timeout(self) -> int | None:
        if self._bench.watch is None:
            return LULL_MS if self._deadline.at else None if self._line.there else ALONE_LOOK_MS
        now = now_ms()
        due = self._bench.due(now)
        due = min(due, self._line.due or due)
        until_lease = self._lease.stop_at - boot_ms()
        return max(0, min(due - now, until_lease))

    def _handle(self, descriptor: int, event: int) -> None:
        if self._bench.handle(descriptor, event):
            return
        if descriptor == self._wake.fileno():
            self._wake.recv(4096)
            self._bench.reaper.reap()
        elif self._line.is_agent(descriptor):
            if event & select.POLLOUT:
                self._line.flush()
            if event & ~select.POLLOUT:
                self._hear_agent()
        elif self._line.is_listener(descriptor):
            self._meet_agent()

    # from the bench

    def _ended(self, done: Done) -> None:
        self._line.done(done)
        self._results.add(done, heard=self._line.there)

    def _give_back(self, works: list[Work]) -> None:
        self._line.give_back([work.key for work in works])

    # the agent

    def _meet_agent(self) -> None:
        if not self._line.accept():
            return
        self._told_tail = ""
        watch = self._bench.watch
        held = [self._pulse()] if watch is not None else []
        devices = watch.work.devices if watch is not None else ""
        self._line.greet(FromSlot(done=self._results.all(), pulses=held, hello=True, pid=os.getpid(), devices=devices))

    def _hear_agent(self) -> None:
        messages = self._line.receive()
        if messages is None:
            self._lose_agent()
            return
        for message in messages:
            self._obey(message)

    def _lose_agent(self) -> None:
        """No agent any more: finish what runs, keep the results for the next agent, drop what has not begun."""
        self._bench.take_back()
        self._results.store_all()

    def _obey(self, message: ToSlot) -> None:
        self._bench.queue.extend(message.run)
        for key in message.acks:
            self._results.forget(key)
        for job, fence, control in message.controls:
            if self._bench.control((job, fence), control):
                self._line.pulse(self._pulse())
        if message.recall:
            self._give_back(self._bench.take_back())
        if message.stop:
            self._stop()

    def _pulse(self) -> Pulse:
        watch = self._bench.watch
        assert watch is not None
        tail = self._bench.log_tail()
        tail, self._told_tail = ("" if tail == self._told_tail else tail), tail
        measures = watch.pulse(reaped_s=self._bench.reaper.cpu_s)
        values = watch.reports.values if watch.reports is not None else {}
        state = "suspended" if watch.suspended else "running"
        return Pulse(watch.work.job, watch.work.fence, state, measures, tail, values)


def main() -> None:
    """`slot.py FOLDER NUMBER LISTENER KEEP`: LISTENER is a descriptor on which the agent connects."""
    folder, number, listener, keep = sys.argv[1:5]
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    connection = socket.socket(fileno=int(listener))
    connection.set_inheritable(False)
    Slot(Home(Path(folder)), int(number), connection, keep=keep == "keep").serve()


if __name__ == "__main__":
    main()
