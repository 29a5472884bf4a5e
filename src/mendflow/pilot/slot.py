"""A slot: the process that owns one running attempt, and outlives the agent that gave it.

It needs nobody to do right by its job: it knows from the mapped lease when the job must be dead, keeps the result until
an agent says that the server has judged it, and ends by itself when there is neither an agent nor a job. All that is
below it belongs to the attempt at hand, so when the attempt ends, everything below (but the idle worker) is killed."""

import os
import select
import signal
import socket
import sys
import time
from collections import deque
from pathlib import Path

import msgspec

from mendflow.core.model.jobs import Measures
from mendflow.pilot.endings import crashed, failed, never_started, returned
from mendflow.pilot.home import Home, remove_attempt, remove_beside, remove_tree, write_whole
from mendflow.pilot.lane import Lane
from mendflow.pilot.lease import LeaseClock, boot_ms
from mendflow.pilot.line import AgentLine
from mendflow.pilot.processes import Reaper, become_reaper, descendants
from mendflow.pilot.shell import ShellRun
from mendflow.pilot.verdicts import End, cannot_start, full_disk
from mendflow.pilot.watch import Watch, now_ms
from mendflow.pilot.wire import AttemptKey, Done, FromSlot, FromWorker, Pulse, ToSlot, Work

LONG_MS = 25
"""When an attempt has run this long, those waiting behind it go back to the agent."""

KEEP_RESULT_US = 100_000
"""Results of attempts that ran longer than this are written to disk at once: running them again would cost more."""

PULSE_MS = 1_000
LOOK_MS = 50
CHATTY_LOOK_MS = 10
NAP_MS = 1
FIRST_AGENT_MS = 10_000

_ENCODER = msgspec.msgpack.Encoder()


class Slot:
    def __init__(self, home: Home, number: int, listener: socket.socket, *, keep: bool) -> None:
        self._home = home
        self._keep = keep
        self._lease = LeaseClock(home.lease)
        self._environment = {name: value for name, value in os.environ.items() if name != "MENDFLOW_TOKEN"}
        self._reaper = Reaper()
        self._lane = Lane(home, number, self._environment, self._reaper)
        self._queue: deque[Work] = deque()
        self._shell: ShellRun | None = None
        self._watch: Watch | None = None
        self._results: dict[AttemptKey, Done] = {}
        self._stored: set[AttemptKey] = set()
        self._told_tail = ""
        self._spare = ""  # the folder of the attempt that has just ended, if another may begin at once
        self._next_pulse = 0
        self._napping_until = 0
        self._chatty = False
        self._over = False
        self._poll = select.poll()
        self._line = AgentLine(listener, self._poll)
        self._wake, self._wake_write = socket.socketpair()
        self._born = now_ms()

    # the loop

    def serve(self) -> None:
        for end in (self._wake, self._wake_write):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        self._poll.register(self._wake, select.POLLIN)
        while not self._over:
            for descriptor, event in self._poll.poll(self._timeout()):
                self._handle(descriptor, event)
            self._look()
            self._advance()
            self._remove_spare()
            self._line.tell(gather=bool(self._queue))
            self._over |= self._needless()
        self._line.close()
        self._reaper.kill_below()

    def _needless(self) -> bool:
        """Neither an agent nor a job."""
        met = self._line.ever or now_ms() > self._born + FIRST_AGENT_MS
        return met and not self._line.there and self._watch is None

    def _stop(self) -> None:
        self._over = True

    def _timeout(self) -> int | None:
        now = now_ms()
        if self._watch is None:
            return None if self._line.there else FIRST_AGENT_MS
        due = min(self._watch.due(), self._next_pulse, now + (CHATTY_LOOK_MS if self._chatty else LOOK_MS))
        if self._queue or len(self._lane.sent) > 1:
            due = min(due, self._watch.started + LONG_MS)
        if self._napping_until:
            due = min(due, self._napping_until)
        due = min(due, self._line.due or due)
        until_lease = self._lease.stop_at - boot_ms()
        return max(0, min(due - now, until_lease))

    def _handle(self, descriptor: int, event: int) -> None:
        if self._shell is not None and descriptor in self._shell.outlets:
            if not self._shell.read(descriptor):
                self._poll.unregister(descriptor)
        elif descriptor == self._wake.fileno():
            self._wake.recv(4096)
            self._reaper.reap()
        elif descriptor == self._lane.descriptor:
            if event & select.POLLOUT:
                self._lane.flush()
                self._poll_worker()
            if event & ~select.POLLOUT:
                self._hear_worker()
        elif self._line.is_agent(descriptor):
            if event & select.POLLOUT:
                self._line.flush()
            if event & ~select.POLLOUT:
                self._hear_agent()
        elif self._line.is_listener(descriptor):
            self._meet_agent()

    def _look(self) -> None:
        """Enforce what holds for the running attempt."""
        now = now_ms()
        if self._shell is not None and self._shell.pid in self._reaper.ended:
            self._end_shell(End.LEASE if self._killed_by_guard(self._shell.pid) else None)
        if self._napping_until and now >= self._napping_until:
            self._napping_until = 0
            self._poll_worker()
        watch = self._watch
        if watch is None:
            return
        end = End.LEASE if self._lease.over(boot_ms()) else watch.look(now)
        if end is not None:
            self._kill(end)
            return
        long = now >= watch.started + LONG_MS
        if long and (self._queue or len(self._lane.sent) > 1):
            self._give_back([*self._lane.take_back(but_first=True), *self._queue])
            self._queue.clear()
        if long and self._shell is None:
            self._chatty = self._lane.bound_log()
        if now >= self._next_pulse:
            self._next_pulse = now + PULSE_MS
            self._line.pulse(self._pulse())

    # starting

    def _advance(self) -> None:
        """Start what can be started, while the lease holds."""
        if self._queue and self._lease.over(boot_ms()):
            self._give_back(list(self._queue))
            self._queue.clear()
        while self._queue and self._shell is None:
            work = self._queue[0]
            if work.command:
                if self._lane.sent:
                    return
                self._queue.popleft()
                self._start_shell(work)
            elif self._lane.settling:
                return
            elif self._lane.suits(work):
                self._send_calls()
            elif self._lane.sent:
                return
            else:  # the worker has another version of a module loaded
                self._reaper.kill_below()
                self._end_worker()

    def _start_shell(self, work: Work) -> None:
        self._reaper.forget()
        try:
            self._shell = ShellRun(work, self._home, self._environment, spare=self._spare)
        except (OSError, ValueError) as error:
            self._ended(self._cannot_start(work, error))
            if not work.own_folder and not self._keep:
                remove_attempt(self._home.attempt(work.job, work.fence))
            return
        if self._shell.took_over:
            self._spare = ""
        for outlet in self._shell.outlets:
            self._poll.register(outlet, select.POLLIN)
        self._begin(work)

    def _cannot_start(self, work: Work, error: OSError | ValueError) -> Done:
        full = full_disk(self._home.attempt(work.job, work.fence), str(error))
        return failed(work, full or cannot_start(error))

    def _send_calls(self) -> None:
        works = []
        code = self._queue[0].code
        while self._queue and not self._queue[0].command and self._queue[0].code == code:
            works.append(self._queue.popleft())
        idle = not self._lane.sent
        try:
            self._lane.send(works)
        except OSError as error:
            for work in works:
                self._ended(self._cannot_start(work, error))
            return
        self._poll_worker()
        if idle:
            self._begin(works[0])

    def _poll_worker(self) -> None:
        """Be woken by the worker, but during a nap only if it can take more."""
        if self._lane.descriptor >= 0:
            events = 0 if self._napping_until else select.POLLIN
            self._poll.register(self._lane.descriptor, events | (select.POLLOUT if self._lane.wants_to_send else 0))

    def _begin(self, work: Work) -> None:
        self._watch = Watch(work, self._family)
        self._next_pulse = self._watch.started + PULSE_MS
        self._chatty = False

    def _family(self) -> list[int]:
        """The processes of the running attempt: all below this one, without the worker if that is idle."""
        spare = self._lane.pid if self._shell is not None else 0
        return descendants(os.getpid(), spare=spare)

    # ending

    def _kill(self, end: End) -> None:
        """End the running attempt now, and whatever it started."""
        watch = self._watch
        assert watch is not None
        if self._shell is not None:
            self._end_shell(end)
            return
        back = self._lane.take_back(but_first=True)
        self._hear_worker()
        if self._watch is watch:  # otherwise it has just ended by itself
            watch.end = end
            self._reaper.kill_below()
            self._hear_worker()
        self._queue.extendleft(reversed(back))

    def _end_shell(self, end: End | None) -> None:
        shell, watch = self._shell, self._watch
        assert shell is not None and watch is not None
        watch.end = End.CANCELLED if end is None and watch.cancelling else end
        self._reaper.kill_below(spare=self._lane.pid, group=shell.pid)
        for outlet in shell.outlets:
            self._poll.unregister(outlet)
        shell.drain()
        done = shell.done(watch, self._reaper, time.time_ns() // 1_000_000, watch.ran_us())
        self._shell = self._watch = None
        self._ended(done)
        if not done.folder and not self._keep:
            self._remove_spare()
            remove_beside(shell.folder)
            self._spare = shell.folder

    def _remove_spare(self) -> None:
        if self._spare:
            remove_tree(self._spare)
            self._spare = ""

    def _killed_by_guard(self, pid: int) -> bool:
        """Whether the attempt was killed because this slot stood still while the lease ended."""
        status = self._reaper.ended.get(pid, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and self._lease.over(boot_ms())

    def _hear_worker(self) -> None:
        """Take all results that are there. Several may have ended since, so the next watch begins with the last."""
        if self._lane.descriptor < 0:
            return
        results, alive = self._lane.receive()
        for work, result in results:
            self._call_ended(work, result)
        if results:
            self._watch = None
            if self._lane.sent:
                self._begin(self._lane.sent[0])
        if not alive:
            self._reaper.kill_below()
            self._end_worker()
        elif results and len(self._lane.sent) > 3:
            self._napping_until = now_ms() + NAP_MS
            self._poll_worker()

    def _call_ended(self, work: Work, result: FromWorker) -> None:
        watch = self._watch
        peak = watch.peak_bytes if watch is not None and watch.work is work else 0
        folder, cut = self._home.attempt(work.job, work.fence), self._lane.cut_bytes()
        self._ended(returned(work, result, folder=folder, cut_bytes=cut, peak_bytes=peak))

    def _end_worker(self) -> None:
        """The worker is dead, and with it the call that it was in; those behind it have not begun and go on."""
        status, guarded = self._reaper.ended.get(self._lane.pid, 0), self._killed_by_guard(self._lane.pid)
        if self._lane.descriptor >= 0:
            self._poll.unregister(self._lane.descriptor)
        self._napping_until = 0
        sent, watch = list(self._lane.sent), self._watch
        tail, cut = self._lane.log_tail(), self._lane.cut_bytes()
        self._lane.close()
        self._watch = None
        if sent:
            work = sent[0]
            assert watch is not None and watch.work is work
            self._queue.extendleft(reversed(sent[1:]))
            watch.end = End.LEASE if watch.end is None and guarded else watch.end
            folder, text = self._home.attempt(work.job, work.fence), tail.decode(errors="replace")
            done = crashed(work, watch, self._reaper, status, tail=text, log_bytes=len(tail) + cut, folder=folder)
            self._ended(done)
        self._reaper.forget()

    def _ended(self, done: Done) -> None:
        self._results[done.key] = done
        self._line.done(done)
        if done.ran_us > KEEP_RESULT_US or not self._line.there:
            self._store(done)

    def _store(self, done: Done) -> None:
        try:
            write_whole(self._home.result(done.job, done.fence), _ENCODER.encode(done))
            self._stored.add(done.key)
        except OSError:
            pass  # a full disk: the result is still in memory, as long as this process lives

    # the agent

    def _meet_agent(self) -> None:
        if not self._line.accept():
            return
        self._told_tail = ""
        held = [self._pulse()] if self._watch is not None else []
        self._line.greet(FromSlot(done=list(self._results.values()), pulses=held, hello=True, pid=os.getpid()))

    def _hear_agent(self) -> None:
        messages = self._line.receive()
        if messages is None:
            self._lose_agent()
            return
        for message in messages:
            self._obey(message)

    def _lose_agent(self) -> None:
        """No agent any more: finish what runs, keep the results for the next agent, drop what has not begun."""
        self._take_back()
        for done in self._results.values():
            self._store(done)

    def _obey(self, message: ToSlot) -> None:
        self._queue.extend(message.run)
        for key in message.acks:
            self._results.pop(key, None)
            if key in self._stored:
                self._stored.discard(key)
                self._home.result(*key).unlink(missing_ok=True)
        for job, fence, control in message.controls:
            self._control((job, fence), control)
        if message.recall:
            self._give_back(self._take_back())
        if message.stop:
            self._stop()

    def _take_back(self) -> list[Work]:
        """All that has not begun. Afterwards at most one attempt is here, and only its signals can be meant."""
        back = [*self._lane.take_back(), *self._queue]
        self._queue.clear()
        self._hear_worker()
        if not self._lane.sent and self._shell is None:
            self._watch = None
        return back

    def _give_back(self, works: list[Work]) -> None:
        self._line.give_back([work.key for work in works])

    def _control(self, key: AttemptKey, control: str) -> None:
        back = self._take_back()
        watch = self._watch
        if watch is not None and watch.work.key == key:
            self._give_back(back)
            self._control_running(watch, control)
            return
        waiting = next((work for work in back if work.key == key), None)
        if waiting is not None and control in ("cancel", "kill"):
            back.remove(waiting)
            self._ended(never_started(waiting, End.CANCELLED if control == "cancel" else End.KILLED))
        self._give_back(back)

    def _control_running(self, watch: Watch, control: str) -> None:
        match control:
            case "suspend":
                watch.suspend()
            case "resume":
                watch.resume()
            case "cancel":
                watch.cancel()
            case _:
                self._kill(End.KILLED)
        if self._watch is watch:
            self._line.pulse(self._pulse())

    def _pulse(self) -> Pulse:
        watch = self._watch
        assert watch is not None
        state = "suspended" if watch.suspended else "running"
        measures = Measures(started_at=watch.started_at, peak_bytes=watch.peak_bytes)
        tail = self._shell.tail.text() if self._shell is not None else self._lane.log_tail().decode(errors="replace")
        tail, self._told_tail = ("" if tail == self._told_tail else tail), tail
        return Pulse(watch.work.job, watch.work.fence, state, measures, tail)


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
