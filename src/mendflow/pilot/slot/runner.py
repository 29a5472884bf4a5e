"""Runs the work of a slot: the waiting attempts, the one that runs, and how it ends.

Every process below this one belongs to the running attempt, so when it ends, all of them (except the idle worker) are
killed. A command runs in its own process; calls go to the warm worker, several at once while they are short."""

import os
import select
import time
from collections import deque
from collections.abc import Callable

from mendflow.pilot.files.secret_files import remove_secret_files
from mendflow.pilot.files.work_folder import WorkFolder, remove_attempt, remove_beside, remove_tree
from mendflow.pilot.isolation.confinement import NotConfined
from mendflow.pilot.slot import call_outcomes
from mendflow.pilot.slot.background_work import GRACE_MS, LeftRunning, wait_for_background
from mendflow.pilot.slot.faults import StopReason, start_fault
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.memory import MACHINE_COUNTER, OutOfMemoryKills
from mendflow.pilot.slot.messages import AttemptKey, FinishedAttempt, RawCallResult, SlotWork
from mendflow.pilot.slot.monitor import AttemptMonitor, now_ms
from mendflow.pilot.slot.outside_ends import OutsideEnds
from mendflow.pilot.slot.parent_death import KillOnParentDeath
from mendflow.pilot.slot.processes import HAS_PROC, Reaper
from mendflow.pilot.slot.reports import ReportReader
from mendflow.pilot.slot.script_shells import ScriptShells, ShellNotFound
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.slot.shell import ShellRun
from mendflow.pilot.slot.worker_channel import WorkerChannel

LONG_MS = 25
"""When an attempt has run this long, those waiting behind it are returned."""

TAKE_UP_MS = 2_000
"""A worker that has not started a call so long after it was sent is replaced, and another gets the call."""

REPORT_MS = 200
LOOK_MS = 50
CHATTY_LOOK_MS = 10
NAP_MS = 1


class SlotRunner:
    """`ended` is called with every attempt that has ended, `give_back` with those that other slots or pilots should
    run. `all_dead` is called when nothing of an attempt is left to be killed: what follows may take long."""

    def __init__(
        self,
        work_folder: WorkFolder,
        number: int,
        poll: "select.poll",
        lease: LeaseClock,
        *,
        settings: SlotSettings,
        ended: Callable[[FinishedAttempt], None],
        give_back: Callable[[list[SlotWork]], None],
        all_dead: Callable[[], None],
    ) -> None:
        self._work_folder = work_folder
        self._settings = settings
        self._keep = settings.keep_all
        self._poll = poll
        self._lease = lease
        self._ended, self._give_back, self._all_dead = ended, give_back, all_dead
        self._environment = settings.variables.select(os.environ)
        self.reaper = Reaper()
        self._kernel_kills = OutOfMemoryKills()
        self._machine_kills = OutOfMemoryKills([MACHINE_COUNTER])  # a container is in a cgroup of its own
        self._worker = WorkerChannel(work_folder, number, self._environment, self.reaper, settings)
        self._parent_death = KillOnParentDeath()
        self._shell: ShellRun | None = None
        self._shells = ScriptShells(self._environment)
        self.queue: deque[SlotWork] = deque()
        self.monitor: AttemptMonitor | None = None
        self._spare = ""  # the folder of the attempt that has just ended, for reuse by the next
        self._napping_until = 0
        self._next_report = 0
        self._chatty = False
        self.outside_ends = OutsideEnds(lease, self.reaper)

    def due(self, now: int) -> int:
        """When the running attempt must be checked again."""
        monitor = self.monitor
        assert monitor is not None
        due = min(monitor.due(), monitor.next_heartbeat, now + (CHATTY_LOOK_MS if self._chatty else LOOK_MS))
        if self.queue or len(self._worker.sent) > 1:
            due = min(due, monitor.started + LONG_MS)
        return min(due, self._napping_until) if self._napping_until else due

    def handle(self, descriptor: int, event: int) -> bool:
        """Handle data from the job or the worker; False if the descriptor is not ours."""
        if self._shell is not None and descriptor == self._shell.outlet:
            if not self._shell.read():
                self._poll.unregister(descriptor)
            return True
        if descriptor != self._worker.descriptor:
            return False
        if event & select.POLLOUT:
            self._worker.flush()
            self._poll_worker()
        if event & ~select.POLLOUT:
            self._read_results()
        return True

    def look(self) -> bool:
        """Enforce the limits of the running attempt; True if a heartbeat is due."""
        now = now_ms()
        if self._shell is not None and self._shell.pid in self.reaper.ended:
            self._end_shell(StopReason.LEASE if self.outside_ends.is_killed_by_guard(self._shell.pid) else None)
        self.outside_ends.read_lease()
        if self._napping_until and now >= self._napping_until:
            self._napping_until = 0
            self._poll_worker()
        monitor = self.monitor
        if monitor is None:
            return False
        end = StopReason.LEASE if self._lease.is_over(boot_ms()) else monitor.look(now)
        if end is not None:
            self.kill(end)
            return False
        if self._shell is None and not monitor.suspended:
            self._tend_worker(now)
            if self.monitor is not monitor:
                return False
        long = now >= monitor.started + LONG_MS
        if long and (self.queue or len(self._worker.sent) > 1):
            self._give_back([*self._worker.take_back(but_first=True), *self.queue])
            self.queue.clear()
        if long and self._shell is None:
            self._chatty = self._worker.trim_log()
        news = now >= self._next_report and self._read_report(monitor, now)
        if now >= monitor.next_heartbeat:
            self._kernel_kills.heartbeat()
            self._machine_kills.heartbeat()
            news = True
        return news

    def _tend_worker(self, now: int) -> None:
        """See that the worker goes on, whatever an earlier job has done to it."""
        self._worker.wake()
        assert self.monitor is not None
        if now >= self.monitor.started + TAKE_UP_MS and self._worker.is_ignoring:
            self.reaper.kill_below()
            self._read_results()

    def _read_report(self, monitor: AttemptMonitor, now: int, *, over: bool = False) -> bool:
        self._next_report = now + REPORT_MS
        if monitor.reports is None:
            monitor.reports = ReportReader(self._shell.report if self._shell is not None else self._worker.report)
        news = monitor.reports.look(over=over)
        if self._shell is not None and (complaint := monitor.reports.complaint()):
            self._shell.note(complaint)  # a call's comes with its outcome: its worker may have read the log by now
        return news

    # starting

    def advance(self) -> None:
        """Start what can be started, while the lease is valid."""
        if self.queue and self._lease.is_over(boot_ms()):
            self._give_back(list(self.queue))
            self.queue.clear()
        while self.queue and self._shell is None:
            work = self.queue[0]
            if work.command:
                if self._worker.sent:
                    return
                self.queue.popleft()
                self._start_shell(work)
            elif self._worker.is_settling or not self._worker.may_take(work):
                return
            else:
                self._send_calls()

    def _start_shell(self, work: SlotWork) -> None:
        self.reaper.forget()
        try:
            self._shell = ShellRun(
                work,
                self._work_folder,
                self._environment,
                self._parent_death,
                self._shells,
                self._settings,
                spare="" if self._settings.isolation.confines else self._spare,
            )
        except (OSError, ValueError, ShellNotFound, NotConfined) as error:
            folder = self._work_folder.attempt(work.job, work.fence)
            fault = error.fault if isinstance(error, ShellNotFound | NotConfined) else start_fault(error, folder)
            self._ended(call_outcomes.failed_attempt(work, fault))
            if not work.own_folder and not self._keep:
                remove_attempt(folder)
            return
        if self._shell.took_over:
            self._spare = ""
        self._poll.register(self._shell.outlet, select.POLLIN)
        self._begin(work)

    def _send_calls(self) -> None:
        works = [self.queue.popleft()]
        alone = self._worker.is_confined
        while self.queue and not alone and not self.queue[0].command and self.queue[0].case == works[0].case:
            works.append(self.queue.popleft())
        idle = not self._worker.sent
        try:
            self._worker.send(works)
        except (OSError, NotConfined) as error:
            for work in works:
                folder = self._work_folder.attempt(work.job, work.fence)
                fault = error.fault if isinstance(error, NotConfined) else start_fault(error, folder)
                self._ended(call_outcomes.failed_attempt(work, fault))
            return
        self._poll_worker()
        if idle:
            self._begin(works[0])

    def _poll_worker(self) -> None:
        """Poll the worker, but during a nap only if it can take more calls."""
        if self._worker.descriptor >= 0:
            events = 0 if self._napping_until else select.POLLIN
            self._poll.register(self._worker.descriptor, events | (select.POLLOUT if self._worker.wants_to_send else 0))

    def _begin(self, work: SlotWork) -> None:
        self.monitor = AttemptMonitor(work, self._attempt_pids, self._all_pids)
        self._next_report = self.monitor.started + REPORT_MS
        self._chatty = False
        self.outside_ends.read_lease()

    def _attempt_pids(self) -> list[int]:
        """The processes of the running attempt: all below this one, except a worker that is idle, or that has forked
        the process which runs the attempt."""
        if self._shell is not None:
            return self._shell.pids(self.reaper.below(spare=self._worker.pid))
        waiting = self._worker.waiting_pid
        return [pid for pid in self.reaper.below() if pid != waiting]

    def _all_pids(self) -> list[int]:
        """The processes of the running attempt, and those that run its container."""
        if self._shell is None:
            return self._attempt_pids()
        below = self.reaper.below(spare=self._worker.pid)
        return [*dict.fromkeys((*below, *self._shell.pids(below)))]

    # ending

    def kill(self, end: StopReason) -> None:
        """Kill the running attempt and everything that it started."""
        monitor = self.monitor
        assert monitor is not None
        if self._shell is not None:
            self._end_shell(end)
            return
        back = self._worker.take_back(but_first=True)
        self._read_results()
        if self.monitor is monitor:  # otherwise it has just ended by itself
            monitor.end = end
            self.reaper.kill_below()
            self._read_results()
        self.queue.extendleft(reversed(back))

    def _end_shell(self, end: StopReason | None) -> None:
        shell, monitor = self._shell, self.monitor
        assert shell is not None and monitor is not None
        monitor.end = self.outside_ends.stop_reason(monitor, shell.pid) if end is None else end
        background = self._background_work(shell, monitor)
        left = self.reaper.kill_below(spare=self._worker.pid, group=shell.pid)
        if not left:
            self._all_dead()
        shell.end_container(self.reaper.ended.get(shell.pid, 0), stopped=end is not None)
        if shell.outlet >= 0:
            self._poll.unregister(shell.outlet)
        if monitor.reports is not None or shell.reported:
            self._read_report(monitor, now_ms(), over=True)
        shell.drain()
        kills = self._kernel_kills if shell.work.container is None else self._machine_kills
        done = shell.done(monitor, self.reaper, kills, time.time_ns() // 1_000_000, left, background)
        self._shell = self.monitor = None
        self._ended(done)
        if not done.folder and not self._keep:
            self.remove_spare()
            remove_beside(shell.folder, shell.beside())
            self._spare = shell.folder

    def _background_work(self, shell: ShellRun, monitor: AttemptMonitor) -> LeftRunning | None:
        """What a script that has ended well left running; a little time is given to what is about to end."""
        if not HAS_PROC or monitor.end is not None or self.reaper.ended.get(shell.pid) != 0:
            return None
        grace_ms = min(GRACE_MS, max(0, self._lease.stop_at - boot_ms() - GRACE_MS))
        return wait_for_background(
            lambda: self.reaper.below(spare=self._worker.pid),
            shell.pid,
            shell.folder,
            grace_ms=grace_ms,
            drain=lambda: self._take_up(shell),
        )

    def _take_up(self, shell: ShellRun) -> None:
        self.reaper.reap()
        if shell.outlet >= 0:
            outlet = shell.outlet
            if not shell.read():
                self._poll.unregister(outlet)

    @property
    def has_spare(self) -> bool:
        return bool(self._spare)

    def remove_spare(self) -> None:
        if self._spare:
            remove_tree(self._spare)
            self._spare = ""

    def _read_results(self) -> None:
        """Process all results that have arrived. Several calls may have ended, so the monitor starts anew with the
        last."""
        if self._worker.descriptor < 0:
            return
        results, alive = self._worker.receive()
        if self._worker.is_confined and (results or not alive):
            self.reaper.kill_below()  # what it has left is looked at when nobody changes it any more
            self._worker.reclaim()
            alive = False
        for work, result in results:
            self._call_ended(work, result)
        if results:
            self.monitor = None
            if self._worker.sent:
                self._begin(self._worker.sent[0])
        if not alive:
            self.reaper.kill_below()
            self._end_worker()
        elif results and len(self._worker.sent) > 3:
            self._napping_until = now_ms() + NAP_MS
            self._poll_worker()

    def _call_ended(self, work: SlotWork, result: RawCallResult) -> None:
        monitor = self.monitor if self.monitor is not None and self.monitor.work is work else None
        folder, cut = self._work_folder.attempt(work.job, work.fence), self._worker.cut_bytes()
        keep, confined = self._worker.keep_folder, self._worker.is_confined
        remove_secret_files(folder, work.secrets.files)
        done = call_outcomes.finished_call(
            work, result, monitor, folder=folder, cut_bytes=cut, keep_folder=keep, is_confined=confined
        )
        self._ended(call_outcomes.masked_attempt(work, done, f"{folder}.log") if work.secrets else done)

    def _end_worker(self) -> None:
        """The worker is dead, and with it the current call; the calls behind it have not started and stay queued. If it
        was something earlier that ended the worker, the current one has not started either."""
        status = self.reaper.ended.get(self._worker.pid, 0)
        guarded = self.outside_ends.is_killed_by_guard(self._worker.pid)
        if self._worker.descriptor >= 0:
            self._poll.unregister(self._worker.descriptor)
        self._napping_until = 0
        sent, monitor = list(self._worker.sent), self.monitor
        if sent:
            assert monitor is not None and monitor.work is sent[0]
            if monitor.end is None:
                monitor.end = StopReason.LEASE if guarded else self.outside_ends.stop_reason(monitor, self._worker.pid)
            self._read_report(monitor, now_ms(), over=True)
        log, printed = self._worker.log_tail(), self._worker.printed_bytes() + self._worker.cut_bytes()
        unstarted = monitor is not None and monitor.end is None and self._worker.is_ignoring
        is_long = bool(sent) and not unstarted and self._worker.hand_over_log(sent[0])
        self._worker.close()
        self.monitor = None
        if unstarted:
            self.queue.extendleft(reversed(sent))
        elif sent:
            self.queue.extendleft(reversed(sent[1:]))
            folder = self._work_folder.attempt(sent[0].job, sent[0].fence)
            assert monitor is not None
            remove_secret_files(folder, sent[0].secrets.files)
            crash = call_outcomes.crashed_call(
                monitor,
                self.reaper,
                self._kernel_kills,
                status,
                log=log,
                printed_bytes=printed,
                is_long=is_long,
                folder=folder,
                keep_folder=self._worker.keep_folder,
            )
            crash = call_outcomes.masked_attempt(sent[0], crash, f"{folder}.log")
            self._ended(call_outcomes.with_folder(crash) if self._worker.is_confined else crash)
        self.reaper.forget()

    # orders

    def take_back(self) -> list[SlotWork]:
        """Return all attempts that have not started. Afterwards at most one attempt is here, so every signal is meant
        for it."""
        back = [*self._worker.take_back(), *self.queue]
        self.queue.clear()
        self._read_results()
        if not self._worker.sent and self._shell is None:
            self.monitor = None
        return back

    def control(self, key: AttemptKey, control: str) -> bool:
        """Carry out an order on an attempt; True if it is the running one and still runs."""
        back = self.take_back()
        monitor = self.monitor
        if monitor is not None and monitor.work.key == key:
            self._give_back(back)
            self._control_running(monitor, control)
            return self.monitor is monitor
        waiting = next((work for work in back if work.key == key), None)
        if waiting is not None and control in ("cancel", "kill"):
            back.remove(waiting)
            reason = StopReason.CANCELLED if control == "cancel" else StopReason.KILLED
            self._ended(call_outcomes.unstarted_attempt(waiting, reason))
        self._give_back(back)
        return False

    def _control_running(self, monitor: AttemptMonitor, control: str) -> None:
        match control:
            case "suspend":
                monitor.suspend()
            case "resume":
                monitor.resume()
            case "cancel":
                monitor.cancel()
            case _ if not monitor.is_cancelling:  # else it has been asked to end, and is killed when its time is over
                self.kill(StopReason.KILLED)

    def log_tail(self) -> str:
        if self._shell is not None:
            return self._shell.tail.text()
        tail = self._worker.log_tail()
        if self.monitor is not None and self.monitor.work.secrets:
            mask = self.monitor.work.secrets.mask()
            tail = mask.mask_bytes(tail)
            tail = tail[: mask.whole(tail)]
        return tail.decode(errors="replace")
