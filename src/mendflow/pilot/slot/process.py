"""A slot: the process that owns one running attempt and outlives the agent that assigned it.

A slot depends on nobody: it reads from shared memory when the job must be dead, keeps the result until an agent says
that the server has acknowledged it, and ends by itself when there is neither an agent nor a job."""

import gc
import os
import select
import signal
import socket
import sys
from pathlib import Path

import msgspec

from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.isolation.hidden_process import hide_memory
from mendflow.pilot.slot import spare
from mendflow.pilot.slot.agent_channel import AgentChannel
from mendflow.pilot.slot.deadline import Deadline
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.messages import FinishedAttempt, FromSlot, Heartbeat, SlotWork, ToSlot
from mendflow.pilot.slot.monitor import now_ms
from mendflow.pilot.slot.processes import become_reaper
from mendflow.pilot.slot.results import SlotResults
from mendflow.pilot.slot.runner import SlotRunner
from mendflow.pilot.slot.settings import SlotSettings

FIRST_AGENT_MS = 10_000
ALONE_LOOK_MS = 500
TOO_LATE_MS = 250
"""How long after the job should be dead its slot must be stopped, if it has not ended; the server waits longer."""

LOOKED_AT_MS = 600_000
"""How long a slot may look at what a job has left."""

LULL_MS = 25
"""The kernel timer is switched off when nothing has run for this long."""

KEEP_UNSAVED_MS = 3_600_000
"""How long after the lease a slot waits with a result that it cannot write: the server may have been away too."""


class Slot:
    def __init__(self, work_folder: WorkFolder, number: int, listener: socket.socket, settings: SlotSettings) -> None:
        self._lease = LeaseClock(work_folder.lease)
        self._poll = select.poll()
        self._agent_channel = AgentChannel(listener, self._poll)
        self._results = SlotResults(work_folder)
        self._deadline = Deadline()
        self._runner = SlotRunner(
            work_folder,
            number,
            self._poll,
            self._lease,
            settings=settings,
            ended=self._ended,
            give_back=self._give_back,
            all_dead=self._on_all_dead,
        )
        self._told_tail = ""
        self._over = False
        self._wake, self._wake_write = socket.socketpair()
        self._born = self._busy_at = now_ms()

    # the loop

    def serve(self) -> None:
        for end in (self._wake, self._wake_write):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._on_terminate())
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        self._poll.register(self._wake, select.POLLIN)
        runner = self._runner
        while not self._over:
            for descriptor, event in self._poll.poll(self._timeout()):
                self._handle(descriptor, event)
            if runner.look():
                self._agent_channel.heartbeat(self._heartbeat())
            self._set_deadline()
            runner.advance()
            self._agent_channel.tell(gather=bool(runner.queue))
            if runner.monitor is None and runner.has_spare:
                self._deadline.lift()  # cleaning up may take long, and nothing waits for it: the result is sent
                runner.remove_spare()
            self._over |= self._is_needless()
        self._agent_channel.close()
        runner.reaper.kill_below()

    def _set_deadline(self) -> None:
        """Set the kernel timer, so that if this process is stopped when the lease ends, the kernel kills it and with it
        the job. Otherwise the slot kills the job itself. Set before a job starts; it is switched off only after a
        pause, so that for one job after another it costs nothing."""
        stop_at, busy = self._lease.stop_at, self._runner.monitor is not None or bool(self._runner.queue)
        if busy:
            self._busy_at = now_ms()
        if boot_ms() >= stop_at or (not busy and now_ms() >= self._busy_at + LULL_MS):
            self._deadline.lift()
        elif busy or self._deadline.at:
            self._deadline.move(stop_at + TOO_LATE_MS)

    def _is_needless(self) -> bool:
        """Whether there is neither an agent, nor a job, nor a result that only this process has. With such a result it
        waits until it can write it or an agent connects, but not for ever, since another pilot will get the job some
        day."""
        met = self._agent_channel.was_connected or now_ms() > self._born + FIRST_AGENT_MS
        if not met or self._agent_channel.is_connected or self._runner.monitor is not None:
            return False
        return self._results.safe() or boot_ms() > self._lease.stop_at + KEEP_UNSAVED_MS

    def _on_terminate(self) -> None:
        """Handle SIGTERM. A batch system that ends a pilot signals every process. The agent gets it too, and ends the
        slots when jobs have had their grace period and the server knows; a slot without an agent ends by itself."""
        self._runner.outside_ends.on_terminate()
        if not self._agent_channel.is_connected:
            self._stop()

    def _stop(self) -> None:
        self._over = True

    def _timeout(self) -> int | None:
        if self._runner.monitor is None:
            return LULL_MS if self._deadline.at else None if self._agent_channel.is_connected else ALONE_LOOK_MS
        now = now_ms()
        due = self._runner.due(now)
        due = min(due, self._agent_channel.due or due)
        until_lease = self._lease.stop_at - boot_ms()
        return max(0, min(due - now, until_lease))

    def _handle(self, descriptor: int, event: int) -> None:
        if self._runner.handle(descriptor, event):
            return
        if descriptor == self._wake.fileno():
            self._wake.recv(4096)
            self._runner.reaper.reap()
        elif self._agent_channel.is_agent(descriptor):
            if event & select.POLLOUT:
                self._agent_channel.flush()
            if event & ~select.POLLOUT:
                self._on_agent_message()
        elif self._agent_channel.is_listener(descriptor):
            self._accept_agent()

    # from the runner

    def _on_all_dead(self) -> None:
        """Nothing of the attempt runs any more, so the lease binds nobody: looking for its files and its error may take
        longer than that on a slow disk, and the loop does not come round to move the timer meanwhile."""
        self._deadline.move(boot_ms() + LOOKED_AT_MS)

    def _ended(self, done: FinishedAttempt) -> None:
        self._agent_channel.done(done)
        self._results.add(done, heard=self._agent_channel.is_connected)

    def _give_back(self, works: list[SlotWork]) -> None:
        self._agent_channel.give_back([work.key for work in works])

    # from the agent

    def _accept_agent(self) -> None:
        if not self._agent_channel.accept():
            return
        self._told_tail = ""
        monitor = self._runner.monitor
        held = [self._heartbeat()] if monitor is not None else []
        devices = monitor.work.devices if monitor is not None else ""
        self._agent_channel.greet(
            FromSlot(done=self._results.all(), heartbeats=held, hello=True, pid=os.getpid(), devices=devices)
        )

    def _on_agent_message(self) -> None:
        messages = self._agent_channel.receive()
        if messages is None:
            self._lose_agent()
            return
        for message in messages:
            self._apply(message)

    def _lose_agent(self) -> None:
        """The agent is gone: finish what runs, keep results for the next agent, drop what has not started."""
        self._runner.take_back()
        self._results.store_all()

    def _apply(self, message: ToSlot) -> None:
        self._runner.queue.extend(message.run)
        for key in message.acks:
            self._results.forget(key)
        for job, fence, control in message.controls:
            if self._runner.control((job, fence), control):
                self._agent_channel.heartbeat(self._heartbeat())
        if message.recall:
            self._give_back(self._runner.take_back())
        if message.stop:
            self._stop()

    def _heartbeat(self) -> Heartbeat:
        monitor = self._runner.monitor
        assert monitor is not None
        tail = self._runner.log_tail()
        tail, self._told_tail = ("" if tail == self._told_tail else tail), tail
        measures = monitor.heartbeat(reaped_s=self._runner.reaper.cpu_s)
        values = monitor.reports.values if monitor.reports is not None else {}
        state = "suspended" if monitor.suspended else "running"
        return Heartbeat(monitor.work.job, monitor.work.fence, state, measures, tail, values)


def main() -> None:
    """`process.py FOLDER NUMBER LISTENER SETTINGS`: LISTENER is a descriptor on which the agent connects. A spare slot
    is told that later."""
    arguments = sys.argv[1:] if sys.argv[1:] != [spare.OPTION] else spare.wait_for_arguments()
    if arguments is None:
        return
    folder, number, listener, settings = arguments
    if sys.argv[1:] != [spare.OPTION]:  # it is found by what it has mapped, and works for whoever runs a flow himself
        hide_memory()
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    connection = socket.socket(fileno=int(listener))
    connection.set_inheritable(False)
    Slot(WorkFolder(Path(folder)), int(number), connection, msgspec.json.decode(settings, type=SlotSettings)).serve()
    gc.freeze()  # the agent waits for the end: garbage is not looked for in what goes anyway


if __name__ == "__main__":
    main()
