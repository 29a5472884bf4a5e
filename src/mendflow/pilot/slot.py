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

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import Measures, Outcome
from mendflow.pilot.home import Home, remove_attempt, write_whole
from mendflow.pilot.lane import Lane
from mendflow.pilot.lease import LeaseClock, boot_ms
from mendflow.pilot.processes import Reaper, become_reaper, descendants
from mendflow.pilot.shell import ShellRun, missing_files
from mendflow.pilot.verdicts import End, cannot_start, died, full_disk, stopped
from mendflow.pilot.watch import Watch, now_ms
from mendflow.pilot.wire import AttemptKey, Done, Frames, FromSlot, FromWorker, Pulse, ToSlot, Work, frame

LONG_MS = 25
"""When an attempt has run this long, those waiting behind it go back to the agent."""

KEEP_RESULT_US = 100_000
"""Results of attempts that ran longer than this are written to disk at once: running them again would cost more."""

PULSE_MS = 1_000
LEASE_LOOK_MS = 200
NAP_MS = 1
GATHER_MS = 4
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
        self._fresh: list[Done] = []
        self._pulses: list[Pulse] = []
        self._returned: list[AttemptKey] = []
        self._next_pulse = 0
        self._napping_until = 0
        self._told_at = 0
        self._over = False
        self._listener = listener
        self._agent: socket.socket | None = None
        self._incoming = Frames()
        self._outgoing = bytearray()
        self._decoder = msgspec.msgpack.Decoder(ToSlot)
        self._poll = select.poll()
        self._wake, wake_write = socket.socketpair()
        self._wake.setblocking(False)
        wake_write.setblocking(False)
        self._wake_write = wake_write
        self._born = now_ms()

    # the loop

    def serve(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        self._listener.setblocking(False)
        self._poll.register(self._listener, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)
        while not self._over:
            for descriptor, event in self._poll.poll(self._timeout()):
                self._handle(descriptor, event)
            self._look()
            self._advance()
            self._tell()
            if (
                self._agent is None
                and self._watch is None
                and (self._born < 0 or now_ms() > self._born + FIRST_AGENT_MS)
            ):
                self._over = True
        self._listener.close()
        self._reaper.kill_below()

    def _timeout(self) -> int | None:
        now = now_ms()
        if self._watch is None:
            return FIRST_AGENT_MS if self._agent is None else None
        due = min(self._watch.due(), now + LEASE_LOOK_MS, self._next_pulse)
        if self._queue or len(self._lane.sent) > 1:
            due = min(due, self._watch.started + LONG_MS)
        if self._napping_until:
            due = min(due, self._napping_until)
        if self._fresh:
            due = min(due, self._told_at + GATHER_MS)
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
        elif self._agent is not None and descriptor == self._agent.fileno():
            self._flush() if event & select.POLLOUT else None
            if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._hear_agent()
        elif descriptor == self._listener.fileno():
            self._meet_agent()

    def _look(self) -> None:
        """Enforce what holds for the running attempt."""
        if self._shell is not None and self._shell.pid in self._reaper.ended:
            self._end_shell(None)
        watch = self._watch
        if self._napping_until and now_ms() >= self._napping_until:
            self._napping_until = 0
            self._poll_worker()
        if watch is None:
            return
        now = now_ms()
        end = End.LEASE if self._lease.over(boot_ms()) else watch.look(now)
        if end is not None:
            self._kill(end)
            return
        if now >= watch.started + LONG_MS and (self._queue or len(self._lane.sent) > 1):
            self._give_back([*self._lane.take_back(but_first=True), *self._queue])
            self._queue.clear()
        if now >= self._next_pulse:
            self._next_pulse = now + PULSE_MS
            self._lane.bound_log()
            self._pulses.append(self._pulse())
        elif self._shell is None and now >= watch.started + LONG_MS:
            self._lane.bound_log()

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
            elif not self._lane.suits(work):
                if self._lane.sent:
                    return
                self._drop_worker()
            else:
                self._send_calls()

    def _start_shell(self, work: Work) -> None:
        self._reaper.forget()
        try:
            self._shell = ShellRun(work, self._home, self._environment)
        except (OSError, ValueError) as error:
            folder = self._home.attempt(work.job, work.fence)
            trouble = error if isinstance(error, OSError) else OSError(7, str(error))
            self._ended(_failed(work, full_disk(folder, str(error)) or cannot_start(trouble)))
            return
        for outlet in self._shell.outlets:
            self._poll.register(outlet, select.POLLIN)
        self._begin(work)

    def _send_calls(self) -> None:
        works = []
        while self._queue and not self._queue[0].command and self._lane.suits(self._queue[0]):
            works.append(self._queue.popleft())
            if self._queue and self._queue[0].code != works[0].code:
                break
        idle = not self._lane.sent
        try:
            self._lane.send(works)
        except OSError as error:
            for work in works:
                self._ended(_failed(work, full_disk(str(self._home.attempts), str(error)) or cannot_start(error)))
            self._lane.sent.clear()
            self._lane.close()
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

    def _family(self) -> list[int]:
        """The processes of the running attempt: all below this one, without the worker if that is idle."""
        spare = self._lane.pid if self._shell is not None else 0
        return descendants(os.getpid(), spare=spare)

    # ending

    def _end_shell(self, end: End | None) -> None:
        shell, watch = self._shell, self._watch
        assert shell is not None and watch is not None
        if end is None and watch.cancelling:
            end = End.CANCELLED
        watch.end = end
        self._reaper.kill_below(spare=self._lane.pid, group=shell.pid)
        for outlet in shell.outlets:
            self._poll.unregister(outlet)
        shell.drain()
        ended_at = time.time_ns() // 1_000_000
        done = shell.done(watch, self._reaper, ended_at, watch.ran_us())
        self._shell = self._watch = None
        self._ended(done)
        if not done.folder and not self._keep:
            remove_attempt(shell.folder)

    def _kill(self, end: End) -> None:
        """End the running attempt now, and whatever it started."""
        assert self._watch is not None
        if self._shell is not None:
            self._end_shell(end)
            return
        back = self._lane.take_back(but_first=True)
        self._watch.end = end
        self._reaper.kill_below()
        self._end_worker()
        self._queue.extendleft(reversed(back))

    def _hear_worker(self) -> None:
        results = self._lane.receive()
        if results is None:
            self._reaper.kill_below()
            self._end_worker()
            return
        for work, done in results:
            self._call_ended(work, done)
        if not results:
            return
        self._watch = None
        if self._lane.sent:
            self._begin(self._lane.sent[0])
            if len(self._lane.sent) > 3:
                self._napping_until = now_ms() + NAP_MS
                self._poll_worker()

    def _call_ended(self, work: Work, done: FromWorker) -> None:
        outcome, files, spills = done.outcome, work.files, done.spills
        cut = self._lane.cut_bytes()
        watch = self._watch
        cancelled = watch is not None and watch.cancelling
        if files or cut or cancelled or (watch is not None and watch.peak_bytes):
            seen = msgspec.msgpack.decode(outcome, type=Outcome)
            measures = msgspec.structs.replace(
                seen.measures,
                stdout_bytes=seen.measures.stdout_bytes + cut,
                peak_bytes=max(seen.measures.peak_bytes, watch.peak_bytes if watch is not None else 0),
            )
            fault = seen.fault or missing_files(files, self._home.attempt(work.job, work.fence))
            files, spills = ({}, []) if fault is not None else (files, spills)
            final = msgspec.structs.replace(
                seen, measures=measures, fault=fault, outputs=None if fault is not None else seen.outputs
            )
            outcome = msgspec.Raw(msgspec.msgpack.encode(final))
        folder = bool(work.own_folder or files or spills)
        self._ended(Done(work.job, work.fence, outcome, max(done.ran_us, 1), files, spills, folder))

    def _end_worker(self) -> None:
        """The worker is dead, and with it the call that it was in; those behind it have not begun and go on."""
        status = self._reaper.ended.get(self._lane.pid, 0)
        if self._lane.descriptor >= 0:
            self._poll.unregister(self._lane.descriptor)
        self._napping_until = 0
        sent, watch = list(self._lane.sent), self._watch
        self._lane.sent.clear()
        tail = self._lane.log_tail().decode(errors="replace")
        self._lane.close()
        self._watch = None
        if sent:
            assert watch is not None
            self._queue.extendleft(reversed(sent[1:]))
            self._ended(self._crashed(sent[0], watch, status, tail))
        self._reaper.forget()

    def _crashed(self, work: Work, watch: Watch, status: int, tail: str) -> Done:
        folder = self._home.attempt(work.job, work.fence)
        end = End.CANCELLED if watch.end is None and watch.cancelling else watch.end
        peak = max(watch.peak_bytes, self._reaper.peak_bytes)
        if end is not None:
            fault = stopped(end, wall_ms=work.wall_ms, memory_bytes=work.memory_bytes, peak_bytes=peak)
        else:
            fault = died(status, folder) or Fault(
                name="exitCode",
                category=Category.JOB,
                message="the function ended its whole process with exit code 0",
                exit_code=0,
            )
        measures = Measures(
            started_at=watch.started_at,
            ended_at=time.time_ns() // 1_000_000,
            cpu_ms=int(self._reaper.cpu_s * 1000),
            peak_bytes=peak,
            stdout_bytes=len(tail) + self._lane.cut_bytes(),
        )
        return _failed(work, msgspec.structs.replace(fault, log_tail=tail), measures, watch.ran_us())

    def _drop_worker(self) -> None:
        """The worker has another version of a module loaded: the next call gets a fresh one."""
        self._reaper.kill_below()
        self._end_worker()

    def _ended(self, done: Done) -> None:
        self._results[done.key] = done
        self._fresh.append(done)
        if done.ran_us > KEEP_RESULT_US or self._agent is None:
            self._store(done)

    def _store(self, done: Done) -> None:
        try:
            write_whole(self._home.result(done.job, done.fence), _ENCODER.encode(done))
            self._stored.add(done.key)
        except OSError:
            pass  # a full disk: the result is still in memory, as long as this process lives

    # the agent

    def _meet_agent(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        if self._agent is not None:
            self._poll.unregister(self._agent)
            self._agent.close()
        self._agent, self._born = connection, -1
        self._incoming = Frames()
        self._poll.register(connection, select.POLLIN)
        self._outgoing.clear()
        self._fresh, self._returned = [], []
        self._told_tail = ""
        held = [self._pulse()] if self._watch is not None else []
        hello = FromSlot(done=list(self._results.values()), pulses=held, hello=True, pid=os.getpid())
        self._outgoing += frame(_ENCODER.encode(hello))

    def _hear_agent(self) -> None:
        assert self._agent is not None
        try:
            data = self._agent.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose_agent()
            return
        for encoded in self._incoming.feed(data):
            self._obey(self._decoder.decode(encoded))

    def _obey(self, message: ToSlot) -> None:
        self._queue.extend(message.run)
        for job, fence in message.acks:
            done = self._results.pop((job, fence), None)
            if done is not None and done.key in self._stored:
                self._stored.discard(done.key)
                self._home.result(job, fence).unlink(missing_ok=True)
        for job, fence, control in message.controls:
            self._control((job, fence), control)
        if message.recall:
            self._give_back(self._unstarted())
        if message.stop:
            self._stop()

    def _stop(self) -> None:
        self._over = True

    def _control(self, key: AttemptKey, control: str) -> None:
        watch = self._watch
        if watch is None or watch.work.key != key:
            waiting = next((work for work in (*self._queue, *self._lane.sent) if work.key == key), None)
            if waiting is None or control == "resume":
                return
            back = self._unstarted()
            if control == "suspend":
                self._give_back(back)
                return
            self._queue.extend(work for work in back if work.key != key)
            if waiting in back:
                end = End.CANCELLED if control == "cancel" else End.KILLED
                self._ended(_failed(waiting, stopped(end, wall_ms=0, memory_bytes=0, peak_bytes=0)))
            return
        match control:
            case "suspend":
                self._give_back(self._unstarted())
                watch.suspend() if self._watch is watch else None
            case "resume":
                watch.resume()
            case "cancel":
                self._give_back(self._unstarted())
                watch.cancel() if self._watch is watch else None
            case "kill":
                self._kill(End.KILLED)
        if self._watch is watch:
            self._pulses.append(self._pulse())

    def _lose_agent(self) -> None:
        """No agent any more: finish what runs, keep the results for the next agent, drop what has not begun."""
        assert self._agent is not None
        self._poll.unregister(self._agent)
        self._agent.close()
        self._agent = None
        self._unstarted()
        for done in self._results.values():
            self._store(done)

    def _unstarted(self) -> list[Work]:
        back = [*self._lane.take_back(), *self._queue]
        self._queue.clear()
        if not self._lane.sent:
            self._watch = self._watch if self._shell is not None else None
        return back

    def _give_back(self, works: list[Work]) -> None:
        self._returned += [work.key for work in works]

    def _pulse(self) -> Pulse:
        watch = self._watch
        assert watch is not None
        state = "suspended" if watch.suspended else "running"
        measures = Measures(started_at=watch.started_at, peak_bytes=watch.peak_bytes)
        tail = self._shell.tail.text() if self._shell is not None else self._lane.log_tail().decode(errors="replace")
        tail, self._told_tail = ("" if tail == self._told_tail else tail), tail
        return Pulse(watch.work.job, watch.work.fence, state, measures, tail)

    def _tell(self) -> None:
        if self._agent is None:
            self._fresh, self._pulses, self._returned = [], [], []
            return
        if self._pulses or self._returned or (self._fresh and not self._gathering()):
            self._told_at = now_ms()
            message = FromSlot(self._fresh, self._pulses, self._returned)
            self._outgoing += frame(_ENCODER.encode(message))
            self._fresh, self._pulses, self._returned = [], [], []
        self._flush()

    def _gathering(self) -> bool:
        """Whether results may wait a moment for more of them: while there is other work at hand."""
        return bool(self._queue) and now_ms() < self._told_at + GATHER_MS

    def _flush(self) -> None:
        if self._agent is None or not self._outgoing:
            return
        try:
            sent = self._agent.send(self._outgoing)
            del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # the agent is gone; reading tells so next
        events = select.POLLIN | (select.POLLOUT if self._outgoing else 0)
        self._poll.modify(self._agent, events)


def _failed(work: Work, fault: Fault, measures: Measures | None = None, ran_us: int = 1) -> Done:
    now = time.time_ns() // 1_000_000
    measures = measures or Measures(started_at=now, ended_at=now)
    outcome = Outcome(fault=fault, exit_code=fault.exit_code, log_tail=fault.log_tail, measures=measures)
    encoded = msgspec.Raw(_ENCODER.encode(outcome))
    return Done(work.job, work.fence, encoded, max(ran_us, 1), {}, [], work.own_folder)


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
