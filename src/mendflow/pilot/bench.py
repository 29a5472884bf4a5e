"""The work of a slot: what waits here, the one attempt that runs, and how it is brought to its end.

All that is below this process belongs to the attempt at hand, so when the attempt ends, everything below (but the idle
worker) is killed. A command runs in a process of its own; calls go to the warm worker, several at once while they are
short."""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable

from mendflow.pilot.endings import crashed, failed, never_started, returned
from mendflow.pilot.home import Home, remove_attempt, remove_beside, remove_tree
from mendflow.pilot.lane import Lane
from mendflow.pilot.lease import LeaseClock, boot_ms
from mendflow.pilot.leash import Leash
from mendflow.pilot.memory import KernelKills
from mendflow.pilot.processes import Reaper
from mendflow.pilot.reports import Reports
from mendflow.pilot.shell import ShellRun
from mendflow.pilot.verdicts import End, cannot_start
from mendflow.pilot.watch import Watch, now_ms
from mendflow.pilot.wire import AttemptKey, Done, FromWorker, Work

LONG_MS = 25
"""When an attempt has run this long, those waiting behind it are given back."""

REPORT_MS = 200
LOOK_MS = 50
CHATTY_LOOK_MS = 10
NAP_MS = 1
TOLD_MS = 60_000
"""A job that ends badly so soon after its slot was told to end was told so too."""

TOLD_TOGETHER_MS = 200
"""Whoever ends a whole pilot tells its processes one after the other; this is how far apart they may hear it."""


class Bench:
    """`ended` is told of every attempt that is over, `give_back` of those that others should have."""

    def __init__(
        self,
        home: Home,
        number: int,
        poll: "select.poll",
        lease: LeaseClock,
        *,
        keep: bool,
        ended: Callable[[Done], None],
        give_back: Callable[[list[Work]], None],
    ) -> None:
        self._home = home
        self._keep = keep
        self._poll = poll
        self._lease = lease
        self._ended, self._give_back = ended, give_back
        self._environment = {name: value for name, value in os.environ.items() if name != "MENDFLOW_TOKEN"}
        self.reaper = Reaper()
        self._kernel_kills = KernelKills()
        self._lane = Lane(home, number, self._environment, self.reaper)
        self._leash = Leash()
        self._shell: ShellRun | None = None
        self.queue: deque[Work] = deque()
        self.watch: Watch | None = None
        self._spare = ""  # the folder of the attempt that has just ended, if another may begin at once
        self._napping_until = 0
        self._next_report = 0
        self._chatty = False
        self._lease_seen = 0  # until when we may run things, as it was when we last looked
        self._told_at = -TOLD_MS  # when this process was last told to end

    def due(self, now: int) -> int:
        """When the running attempt must be looked at again."""
        watch = self.watch
        assert watch is not None
        due = min(watch.due(), watch.next_pulse, now + (CHATTY_LOOK_MS if self._chatty else LOOK_MS))
        if self.queue or len(self._lane.sent) > 1:
            due = min(due, watch.started + LONG_MS)
        return min(due, self._napping_until) if self._napping_until else due

    def handle(self, descriptor: int, event: int) -> bool:
        """Something came from the job or the worker; False if this descriptor is nothing of ours."""
        if self._shell is not None and descriptor in self._shell.outlets:
            if not self._shell.read(descriptor):
                self._poll.unregister(descriptor)
            return True
        if descriptor != self._lane.descriptor:
            return False
        if event & select.POLLOUT:
            self._lane.flush()
            self._poll_worker()
        if event & ~select.POLLOUT:
            self._hear_worker()
        return True

    def look(self) -> bool:
        """Enforce what holds for the running attempt; True if it is time to tell how it is doing."""
        now = now_ms()
        if self._shell is not None and self._shell.pid in self.reaper.ended:
            self._end_shell(End.LEASE if self._killed_by_guard(self._shell.pid) else None)
        self._lease_seen = self._lease.stop_at
        if self._napping_until and now >= self._napping_until:
            self._napping_until = 0
            self._poll_worker()
        watch = self.watch
        if watch is None:
            return False
        end = End.LEASE if self._lease.over(boot_ms()) else watch.look(now)
        if end is not None:
            self.kill(end)
            return False
        long = now >= watch.started + LONG_MS
        if long and (self.queue or len(self._lane.sent) > 1):
            self._give_back([*self._lane.take_back(but_first=True), *self.queue])
            self.queue.clear()
        if long and self._shell is None:
            self._chatty = self._lane.bound_log()
        news = now >= self._next_report and self._hear_report(watch, now)
        if now >= watch.next_pulse:
            self._kernel_kills.pulse()
            news = True
        return news

    def _hear_report(self, watch: Watch, now: int, *, over: bool = False) -> bool:
        self._next_report = now + REPORT_MS
        if watch.reports is None:
            watch.reports = Reports(self._shell.report if self._shell is not None else self._lane.report)
        news = watch.reports.look(over=over)
        if complaint := watch.reports.complaint():
            self._shell.note(complaint) if self._shell is not None else self._lane.note(complaint)
        return news

    # starting

    def advance(self) -> None:
        """Start what can be started, while the lease holds."""
        if self.queue and self._lease.over(boot_ms()):
            self._give_back(list(self.queue))
            self.queue.clear()
        while self.queue and self._shell is None:
            work = self.queue[0]
            if work.command:
                if self._lane.sent:
                    return
                self.queue.popleft()
                self._start_shell(work)
            elif self._lane.settling:
                return
            elif self._lane.suits(work):
                self._send_calls()
            elif self._lane.sent:
                return
            else:  # the worker has another version of a module loaded
                self.reaper.kill_below()
                self._end_worker()

    def _start_shell(self, work: Work) -> None:
        self.reaper.forget()
        try:
            self._shell = ShellRun(work, self._home, self._environment, self._leash, spare=self._spare)
        except (OSError, ValueError) as error:
            folder = self._home.attempt(work.job, work.fence)
            self._ended(failed(work, cannot_start(error, folder)))
            if not work.own_folder and not self._keep:
                remove_attempt(folder)
            return
        if self._shell.took_over:
            self._spare = ""
        for outlet in self._shell.outlets:
            self._poll.register(outlet, select.POLLIN)
        self._begin(work)

    def _send_calls(self) -> None:
        works = []
        code = self.queue[0].code
        while self.queue and not self.queue[0].command and self.queue[0].code == code:
            works.append(self.queue.popleft())
        idle = not self._lane.sent
        try:
            self._lane.send(works)
        except OSError as error:
            for work in works:
                self._ended(failed(work, cannot_start(error, self._home.attempt(work.job, work.fence))))
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
        self.watch = Watch(work, self._family)
        self._next_report = self.watch.started + REPORT_MS
        self._chatty = False
        self._lease_seen = self._lease.stop_at

    def _family(self) -> list[int]:
        """The processes of the running attempt: all below this one, without the worker if that is idle."""
        return self.reaper.below(spare=self._lane.pid if self._shell is not None else 0)

    # ending

    def kill(self, end: End) -> None:
        """End the running attempt now, and whatever it started."""
        watch = self.watch
        assert watch is not None
        if self._shell is not None:
            self._end_shell(end)
            return
        back = self._lane.take_back(but_first=True)
        self._hear_worker()
        if self.watch is watch:  # otherwise it has just ended by itself
            watch.end = end
            self.reaper.kill_below()
            self._hear_worker()
        self.queue.extendleft(reversed(back))

    def _end_shell(self, end: End | None) -> None:
        shell, watch = self._shell, self.watch
        assert shell is not None and watch is not None
        watch.end = self._end_of(watch, shell.pid) if end is None else end
        left = self.reaper.kill_below(spare=self._lane.pid, group=shell.pid)
        for outlet in shell.outlets:
            self._poll.unregister(outlet)
        if watch.reports is not None or shell.reported:
            self._hear_report(watch, now_ms(), over=True)
        shell.drain()
        done = shell.done(watch, self.reaper, self._kernel_kills, time.time_ns() // 1_000_000, left)
        self._shell = self.watch = None
        self._ended(done)
        if not done.folder and not self._keep:
            self.remove_spare()
            remove_beside(shell.folder, shell.beside())
            self._spare = shell.folder

    @property
    def has_spare(self) -> bool:
        return bool(self._spare)

    def remove_spare(self) -> None:
        if self._spare:
            remove_tree(self._spare)
            self._spare = ""

    def told(self) -> None:
        """Somebody has told this process to end, as a batch system tells all processes of a pilot."""
        self._told_at = now_ms()

    def _end_of(self, watch: Watch, pid: int) -> End | None:
        """Why the attempt of this process is over, if that was not its own doing. What ends in the moment in which all
        are told to end was ended by that, even if it says that all is well: a script goes on when the command that it
        waits for was killed."""
        if watch.cancelling:
            return End.CANCELLED
        status = self.reaper.ended.get(pid, 0)
        if signal.SIGTERM in (os.WTERMSIG(status), os.WEXITSTATUS(status) - 128):
            self._await_told()
        ago = now_ms() - self._told_at
        return End.LEFT if ago < (TOLD_MS if status else TOLD_TOGETHER_MS) else None

    def _await_told(self) -> None:
        """The job was told to end, and not by us: perhaps so are we, in a moment."""
        until = now_ms() + TOLD_TOGETHER_MS
        while now_ms() < until and now_ms() - self._told_at >= TOLD_MS:
            time.sleep(0.005)

    def _killed_by_guard(self, pid: int) -> bool:
        """Whether the attempt was killed because this slot stood still while the lease ended. By the lease as it was
        before: an agent that woke up with us may have renewed it since, for others."""
        status = self.reaper.ended.get(pid, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and boot_ms() >= self._lease_seen

    def _hear_worker(self) -> None:
        """Take all results that are there. Several may have ended since, so the next watch begins with the last."""
        if self._lane.descriptor < 0:
            return
        results, alive = self._lane.receive()
        for work, result in results:
            self._call_ended(work, result)
        if results:
            self.watch = None
            if self._lane.sent:
                self._begin(self._lane.sent[0])
        if not alive:
            self.reaper.kill_below()
            self._end_worker()
        elif results and len(self._lane.sent) > 3:
            self._napping_until = now_ms() + NAP_MS
            self._poll_worker()

    def _call_ended(self, work: Work, result: FromWorker) -> None:
        watch = self.watch if self.watch is not None and self.watch.work is work else None
        folder, cut = self._home.attempt(work.job, work.fence), self._lane.cut_bytes()
        self._ended(returned(work, result, watch, folder=folder, cut_bytes=cut))

    def _end_worker(self) -> None:
        """The worker is dead, and with it the call that it was in; those behind it have not begun and go on."""
        status, guarded = self.reaper.ended.get(self._lane.pid, 0), self._killed_by_guard(self._lane.pid)
        if self._lane.descriptor >= 0:
            self._poll.unregister(self._lane.descriptor)
        self._napping_until = 0
        sent, watch = list(self._lane.sent), self.watch
        if sent:
            assert watch is not None and watch.work is sent[0]
            if watch.end is None:
                watch.end = End.LEASE if guarded else self._end_of(watch, self._lane.pid)
            self._hear_report(watch, now_ms(), over=True)
        log, cut = self._lane.log_tail(), self._lane.cut_bytes()
        self._lane.close()
        self.watch = None
        if sent:
            self.queue.extendleft(reversed(sent[1:]))
            folder = self._home.attempt(sent[0].job, sent[0].fence)
            assert watch is not None
            self._ended(crashed(watch, self.reaper, self._kernel_kills, status, log=log, cut_bytes=cut, folder=folder))
        self.reaper.forget()

    # what is asked of it

    def take_back(self) -> list[Work]:
        """All that has not begun. Afterwards at most one attempt is here, and only its signals can be meant."""
        back = [*self._lane.take_back(), *self.queue]
        self.queue.clear()
        self._hear_worker()
        if not self._lane.sent and self._shell is None:
            self.watch = None
        return back

    def control(self, key: AttemptKey, control: str) -> bool:
        """Do to an attempt what is ordered; True if it was the one that runs, and it still does."""
        back = self.take_back()
        watch = self.watch
        if watch is not None and watch.work.key == key:
            self._give_back(back)
            self._control_running(watch, control)
            return self.watch is watch
        waiting = next((work for work in back if work.key == key), None)
        if waiting is not None and control in ("cancel", "kill"):
            back.remove(waiting)
            self._ended(never_started(waiting, End.CANCELLED if control == "cancel" else End.KILLED))
        self._give_back(back)
        return False

    def _control_running(self, watch: Watch, control: str) -> None:
        match control:
            case "suspend":
                watch.suspend()
            case "resume":
                watch.resume()
            case "cancel":
                watch.cancel()
            case _:
                self.kill(End.KILLED)

    def log_tail(self) -> str:
        return self._shell.tail.text() if self._shell is not None else self._lane.log_tail().decode(errors="replace")
