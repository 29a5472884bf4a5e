"""Runs the work of a slot: the waiting attempts, the one that runs, and how it ends.

Every process below this one belongs to the running attempt, so when it ends, all of them (except the idle worker) are
killed. A command runs in its own process; calls go to the warm worker, several at once while they are short."""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable

from mendflow.pilot.files.work_folder import WorkFolder, remove_attempt, remove_beside, remove_tree
from mendflow.pilot.slot.call_outcomes import crashed_call, failed_attempt, finished_call, unstarted_attempt
from mendflow.pilot.slot.faults import StopReason, start_fault
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.memory import OutOfMemoryKills
from mendflow.pilot.slot.messages import AttemptKey, FinishedAttempt, RawCallResult, SlotWork
from mendflow.pilot.slot.monitor import AttemptMonitor, now_ms
from mendflow.pilot.slot.parent_death import KillOnParentDeath
from mendflow.pilot.slot.processes import Reaper
from mendflow.pilot.slot.reports import ReportReader
from mendflow.pilot.slot.script_shells import ScriptShells, ShellNotFound
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.slot.shell import ShellRun
from mendflow.pilot.slot.worker_channel import WorkerChannel

LONG_MS = 25
"""When an attempt has run this long, those waiting behind it are returned."""

REPORT_MS = 200
LOOK_MS = 50
CHATTY_LOOK_MS = 10
NAP_MS = 1
TERMINATED_MS = 60_000
"""A job that fails this soon after its slot got SIGTERM got SIGTERM too."""

TERMINATED_TOGETHER_MS = 200
"""A batch system signals the processes of a pilot one after the other; this is the longest delay between the first and
the last."""


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
        self._environment = {name: value for name, value in os.environ.items() if name != "MENDFLOW_TOKEN"}
        self.reaper = Reaper()
        self._kernel_kills = OutOfMemoryKills()
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
        self._lease_seen = 0  # the end of the lease when it was last read
        self._terminated_at = -TERMINATED_MS  # when this process last got SIGTERM

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
            self._end_shell(StopReason.LEASE if self._killed_by_guard(self._shell.pid) else None)
        self._lease_seen = self._lease.stop_at
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
        long = now >= monitor.started + LONG_MS
        if long and (self.queue or len(self._worker.sent) > 1):
            self._give_back([*self._worker.take_back(but_first=True), *self.queue])
            self.queue.clear()
        if long and self._shell is None:
            self._chatty = self._worker.trim_log()
        news = now >= self._next_report and self._read_report(monitor, now)
        if now >= monitor.next_heartbeat:
            self._kernel_kills.heartbeat()
            news = True
        return news

    def _read_report(self, monitor: AttemptMonitor, now: int, *, over: bool = False) -> bool:
        self._next_report = now + REPORT_MS
        if monitor.reports is None:
            monitor.reports = ReportReader(self._shell.report if self._shell is not None else self._worker.report)
        news = monitor.reports.look(over=over)
        if complaint := monitor.reports.complaint():
            self._shell.note(complaint) if self._shell is not None else self._worker.note(complaint)
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
            elif self._worker.is_settling:
                return
            elif self._worker.can_run(work):
                self._send_calls()
            elif self._worker.sent:
                return
            else:  # the worker has another version of a module loaded
                self.reaper.kill_below()
                self._end_worker()

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
                spare=self._spare,
            )
        except (OSError, ValueError, ShellNotFound) as error:
            folder = self._work_folder.attempt(work.job, work.fence)
            fault = error.fault if isinstance(error, ShellNotFound) else start_fault(error, folder)
            self._ended(failed_attempt(work, fault))
            if not work.own_folder and not self._keep:
                remove_attempt(folder)
            return
        if self._shell.took_over:
            self._spare = ""
        self._poll.register(self._shell.outlet, select.POLLIN)
        self._begin(work)

    def _send_calls(self) -> None:
        works = []
        code = self.queue[0].code
        while self.queue and not self.queue[0].command and self.queue[0].code == code:
            works.append(self.queue.popleft())
        idle = not self._worker.sent
        try:
            self._worker.send(works)
        except OSError as error:
            for work in works:
                self._ended(failed_attempt(work, start_fault(error, self._work_folder.attempt(work.job, work.fence))))
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
        self.monitor = AttemptMonitor(work, self._attempt_pids)
        self._next_report = self.monitor.started + REPORT_MS
        self._chatty = False
        self._lease_seen = self._lease.stop_at

    def _attempt_pids(self) -> list[int]:
        """The processes of the running attempt: all below this one, except an idle worker."""
        return self.reaper.below(spare=self._worker.pid if self._shell is not None else 0)

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
        monitor.end = self._stop_reason(monitor, shell.pid) if end is None else end
        left = self.reaper.kill_below(spare=self._worker.pid, group=shell.pid)
        if not left:
            self._all_dead()
        if shell.outlet >= 0:
            self._poll.unregister(shell.outlet)
        if monitor.reports is not None or shell.reported:
            self._read_report(monitor, now_ms(), over=True)
        shell.drain()
        done = shell.done(monitor, self.reaper, self._kernel_kills, time.time_ns() // 1_000_000, left)
        self._shell = self.monitor = None
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

    def on_terminate(self) -> None:
        """Handle SIGTERM, which a batch system sends to all processes of a pilot."""
        self._terminated_at = now_ms()

    def _stop_reason(self, monitor: AttemptMonitor, pid: int) -> StopReason | None:
        """Why the attempt ended, if the reason is outside it. An attempt that ends when all processes get SIGTERM was
        ended by that, even with exit code 0: a script continues when the command that it waits for is killed."""
        if monitor.is_cancelling:
            return StopReason.CANCELLED
        status = self.reaper.ended.get(pid, 0)
        if signal.SIGTERM in (os.WTERMSIG(status), os.WEXITSTATUS(status) - 128):
            self._wait_for_terminate()
        ago = now_ms() - self._terminated_at
        return StopReason.LEFT if ago < (TERMINATED_MS if status else TERMINATED_TOGETHER_MS) else None

    def _wait_for_terminate(self) -> None:
        """The job got SIGTERM, not from us: wait a moment whether this process gets it too."""
        until = now_ms() + TERMINATED_TOGETHER_MS
        while now_ms() < until and now_ms() - self._terminated_at >= TERMINATED_MS:
            time.sleep(0.005)

    def _killed_by_guard(self, pid: int) -> bool:
        """Whether the guard killed the attempt because this slot was stopped while the lease ended. Compares with the
        lease as it was before: an agent that woke up with us may have renewed it since, for other attempts."""
        status = self.reaper.ended.get(pid, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and boot_ms() >= self._lease_seen

    def _read_results(self) -> None:
        """Process all results that have arrived. Several calls may have ended, so the monitor starts anew with the
        last."""
        if self._worker.descriptor < 0:
            return
        results, alive = self._worker.receive()
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
        keep = self._worker.keep_folder
        self._ended(finished_call(work, result, monitor, folder=folder, cut_bytes=cut, keep_folder=keep))

    def _end_worker(self) -> None:
        """The worker is dead, and with it the current call; the calls behind it have not started and stay queued."""
        status, guarded = self.reaper.ended.get(self._worker.pid, 0), self._killed_by_guard(self._worker.pid)
        if self._worker.descriptor >= 0:
            self._poll.unregister(self._worker.descriptor)
        self._napping_until = 0
        sent, monitor = list(self._worker.sent), self.monitor
        if sent:
            assert monitor is not None and monitor.work is sent[0]
            if monitor.end is None:
                monitor.end = StopReason.LEASE if guarded else self._stop_reason(monitor, self._worker.pid)
            self._read_report(monitor, now_ms(), over=True)
        log, printed = self._worker.log_tail(), self._worker.printed_bytes() + self._worker.cut_bytes()
        is_long = bool(sent) and self._worker.hand_over_log(sent[0])
        self._worker.close()
        self.monitor = None
        if sent:
            self.queue.extendleft(reversed(sent[1:]))
            folder = self._work_folder.attempt(sent[0].job, sent[0].fence)
            assert monitor is not None
            self._ended(
                crashed_call(
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
            )
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
            self._ended(unstarted_attempt(waiting, StopReason.CANCELLED if control == "cancel" else StopReason.KILLED))
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
            case _:
                self.kill(StopReason.KILLED)

    def log_tail(self) -> str:
        return self._shell.tail.text() if self._shell is not None else self._worker.log_tail().decode(errors="replace")
