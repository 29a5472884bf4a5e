"""A slot's side of its warm worker: sends calls in batches, gets results one by one.

A worker may hold several short calls. The slot can take back those that have not started (see worker/progress.py), so a
long call never blocks others, and a crash costs only the call that crashed.

A call may stop the worker, or do worse to it. So a worker holds calls of one case at a time, its results count only for
calls that have started, and one that has stopped is continued."""

import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Iterable

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.pilot.files.work_folder import WorkFolder, remove_tree
from mendflow.pilot.isolation.confinement import JobConfinement
from mendflow.pilot.slot.confining import confine, prepare_worker, sealed_memory
from mendflow.pilot.slot.kept_attempts import is_worth_keeping, kept_call, mark_kept
from mendflow.pilot.slot.logs import SHIPPED_BYTES, give_back_middle, is_stored, left_out_line
from mendflow.pilot.slot.messages import NIL, FrameReader, FunctionCall, RawCallBatch, RawCallResult, SlotWork, frame
from mendflow.pilot.slot.parent_death import KillOnParentDeath
from mendflow.pilot.slot.processes import Reaper
from mendflow.pilot.slot.reports import take_report
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.slot.shell import own_session
from mendflow.pilot.worker.progress import NO_LIMIT, CallProgress

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(RawCallResult)
_CALL_DECODER = msgspec.msgpack.Decoder(FunctionCall)


class WorkerChannel:
    """`sent` are the calls that the worker has, oldest first; only the oldest can have started."""

    def __init__(
        self,
        work_folder: WorkFolder,
        slot: int,
        environment: dict[str, str],
        reaper: Reaper,
        settings: SlotSettings,
    ) -> None:
        self._work_folder = work_folder
        self._settings = settings
        base = work_folder.slots / str(slot)
        self._progress_path, self._log_path, self._cwd = f"{base}.calls", f"{base}.log", f"{base}.cwd"
        self.report = f"{base}.report"
        self._cache = str(work_folder.cache)
        self._environment = environment | {"MENDFLOW_REPORT": self.report}
        self._reaper = reaper
        self._parent_death = KillOnParentDeath()
        self.pid = 0
        self.sent: deque[SlotWork] = deque()
        self._link: socket.socket | None = None
        self._frames = FrameReader()
        self._outgoing = bytearray()
        self._first = 1  # the number of the oldest call in `sent`
        self._skips = 0  # calls that were taken back and that the worker has yet to skip
        self._cut_bytes = 0
        self._confined: JobConfinement | None = None

    @property
    def descriptor(self) -> int:
        return self._link.fileno() if self._link is not None else -1

    @property
    def is_settling(self) -> bool:
        """Calls that were taken back are still in transit: nothing may be sent yet."""
        return self._skips > 0

    @property
    def waiting_pid(self) -> int:
        """The worker's process, if another one runs the present call; 0 otherwise."""
        return self.pid if self._link is not None and self._progress.runner else 0

    def send(self, works: list[SlotWork]) -> None:
        """Send calls. Starts the worker if there is none; if that fails, nothing was sent."""
        assert self._skips == 0, "calls that were taken back are still in transit"
        if self._link is None:
            self._start(works[0])
        assert self._link is not None
        message = RawCallBatch(self._first + len(self.sent), [work.call for work in works])
        self.sent.extend(works)
        self._outgoing += frame(_ENCODER.encode(message))
        self.flush()

    def flush(self) -> None:
        """Send what the worker accepts without blocking: the slot has a job to watch."""
        if not self._outgoing or self._link is None:
            return
        try:
            sent = self._link.send(self._outgoing, socket.MSG_DONTWAIT)
            del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # it has just died; the next read shows it

    @property
    def wants_to_send(self) -> bool:
        return bool(self._outgoing)

    @property
    def is_confined(self) -> bool:
        """Whether each call has a worker of its own, which is not as the pilot."""
        return self._settings.isolation.is_set

    def _start(self, work: SlotWork) -> None:
        self._first, self._skips, self._cut_bytes = 1, 0, 0
        self._frames = FrameReader()
        environment, memory = self._environment, -1
        if self.is_confined:
            environment, memory = self._confine(work)
        self._progress = CallProgress(self._progress_path, fresh=True)
        if self._confined is None:
            take_report(self.report)
            remove_tree(self._cwd)
            os.makedirs(self._cwd, exist_ok=True)
        log = os.open(self._log_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        ours, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        module = ["-P", "-m", "mendflow.pilot.worker.process", str(theirs.fileno()), self._progress_path]
        module += [self._log_path, self._cwd, self._cache, "keep" if self._keeps_in_worker else "tidy"]
        words = [sys.executable, *module]
        if self._confined is not None:
            words = self._confined.words(sys.executable, module)
        try:
            os.chdir(self._cwd)
            self.pid = os.posix_spawn(
                words[0],
                words,
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                    *self._parent_death.file_actions(),
                ],
                setsigdef=[signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD],
                setsigmask=[],
                **own_session(),
            )
        finally:
            os.close(log)
            theirs.close()
            if memory >= 0:
                os.close(memory)
        self._parent_death.hold(self.pid)
        self._link = ours

    @property
    def _keeps_in_worker(self) -> bool:
        """Whether the worker itself marks folders that are kept; one that is confined cannot."""
        return self._settings.keep_failed and not self.is_confined

    def _confine(self, work: SlotWork) -> tuple[dict[str, str], int]:
        """Give the worker of this call places of its own; returns its environment, and the descriptor of the memory
        that it shares with the slot. Raises NotConfined."""
        confinement = confine(self._settings, self._work_folder, work)
        assert confinement is not None, "calls run in no container"
        call = _CALL_DECODER.decode(work.call)
        places = prepare_worker(confinement, self._work_folder, work, call.folder)
        self._confined, self._log_path, self.report = confinement, places.log, places.report
        self._cwd, self._cache = places.cwd, places.values
        memory = sealed_memory()
        os.set_inheritable(memory, True)
        self._progress_path = f"/proc/self/fd/{memory}"
        return confinement.variables(self._environment) | {"MENDFLOW_REPORT": self.report}, memory

    def reclaim(self) -> None:
        """The worker of the one call is dead: nobody else can change what it has left."""
        if self._confined is not None:
            self._confined.reclaim()

    def receive(self) -> tuple[list[tuple[SlotWork, RawCallResult]], bool]:
        """All results that have arrived, in the order of the calls, and whether the worker is alive."""
        assert self._link is not None
        results: list[tuple[SlotWork, RawCallResult]] = []
        while True:
            try:
                data = self._link.recv(1 << 18, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return results, True
            except ConnectionResetError:
                data = b""
            if not data:
                return results, False
            taken, right = self._results(self._frames.feed(data))
            results += taken
            if not right:
                return results, False

    def _results(self, encoded: Iterable[bytes]) -> tuple[list[tuple[SlotWork, RawCallResult]], bool]:
        """The results, and whether they are what a worker may send: something else may have written to its link."""
        results: list[tuple[SlotWork, RawCallResult]] = []
        for one in encoded:
            try:
                done = _DECODER.decode(one)
            except msgspec.DecodeError:
                return results, False
            if done.ran_us == 0 and bytes(done.outcome) == bytes(NIL):
                if self._skips == 0:
                    return results, False
                self._skips -= 1
                self._first = done.number + 1
                if self._skips == 0:
                    self._progress.allow_until(NO_LIMIT)
                continue
            if not self.sent or done.number != self._first or not self._is_begun():
                return results, False
            self._first += 1
            results.append((self.sent.popleft(), done))
        return results, True

    def take_back(self, *, but_first: bool = False) -> list[SlotWork]:
        """Take back all calls that have not started, or all but the oldest. The worker will skip them."""
        if self.is_confined:
            return []  # its process is below others, which would be stopped in its place
        spared = int(but_first or self._is_begun())
        if len(self.sent) <= spared or self._skips or self._link is None or not self._stop_worker():
            return []
        keep = max(int(but_first), self._progress.begun - self._first + 1)
        self._progress.allow_until(self._first + keep - 1)
        back = list(self.sent)[keep:]
        while len(self.sent) > keep:
            self.sent.pop()
        self._skips = len(back)
        if not back:
            self._progress.allow_until(NO_LIMIT)
        os.kill(self.pid, signal.SIGCONT)
        return back

    def may_take(self, work: SlotWork) -> bool:
        """Whether the worker may have this call beside those that it has: what runs there could read it."""
        return not self.sent or (self.sent[-1].case == work.case and not self.is_confined)

    @property
    def is_ignoring(self) -> bool:
        """Whether a worker that has served before has not started the call that it was sent."""
        return bool(self.sent) and self._first > 1 and not self._skips and not self._is_begun()

    def wake(self) -> None:
        """Let the worker go on, if it was stopped by a job."""
        try:
            if self.pid and os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG) is not None:
                os.kill(self.pid, signal.SIGCONT)
        except (ProcessLookupError, ChildProcessError):
            return

    def _is_begun(self) -> bool:
        return self._link is not None and self._progress.begun >= self._first

    def _stop_worker(self) -> bool:
        """Stop the worker with SIGSTOP and wait until it has stopped; False if it is dead."""
        try:
            os.kill(self.pid, signal.SIGSTOP)
            _, status = os.waitpid(self.pid, os.WUNTRACED)
        except (ProcessLookupError, ChildProcessError):
            return False
        if not os.WIFSTOPPED(status):
            self._reaper.ended[self.pid] = status
            return False
        return True

    def close(self) -> None:
        """The worker is dead; the next call starts another."""
        self.sent.clear()
        if self._link is not None:
            self._link.close()
        self._link = self._confined = None
        self._outgoing.clear()
        self.pid = 0
        self._skips = 0

    def trim_log(self) -> bool:
        """Remove the middle of the running call's log when it is too long; True if it grows so fast that it should be
        checked again soon. Where the file system cannot remove it, all but the end goes: the file is open for
        appending, so the worker continues at the new end."""
        bytes_max = self._settings.log_bytes_max
        try:
            size = os.stat(self._log_path).st_size
            if size > bytes_max:
                with open(self._log_path, "r+b") as log:
                    given_back = give_back_middle(log.fileno(), size, bytes_max)
                if not given_back:
                    tail = self.log_tail()
                    os.truncate(self._log_path, 0)
                    self._cut_bytes += size
                    self.note(left_out_line(size - len(tail)) + tail)
            return size > bytes_max // 4
        except OSError:
            return False

    def printed_bytes(self) -> int:
        try:
            return os.stat(self._log_path).st_size
        except OSError:
            return 0

    def hand_over_log(self, work: SlotWork) -> bool:
        """The worker died in this call: let the attempt have its log, if that is more than what travels with the
        result. The next worker begins another."""
        if not is_stored(self.printed_bytes(), self.log_tail()):
            return False
        try:
            os.rename(self._log_path, f"{self._work_folder.attempt(work.job, work.fence)}.log")
        except OSError:
            return False
        return True

    def keep_folder(self, work: SlotWork, fault: Fault) -> str:
        """The worker died in this call: leave the folder that it worked in for people to look into, if that is wanted
        and worth it. Where it now is, or nothing."""
        if not self._settings.keep_failed or not is_worth_keeping(fault):
            return ""
        folder, call = self._work_folder.attempt(work.job, work.fence), _CALL_DECODER.decode(work.call)
        try:
            if not work.own_folder:
                os.rename(self._cwd, folder)
        except OSError:
            return ""
        return folder if mark_kept(kept_call(call, fault, self._environment | call.env | call.names)) else ""

    def log_tail(self) -> bytes:
        try:
            with open(self._log_path, "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - SHIPPED_BYTES))
                return log.read(SHIPPED_BYTES)
        except OSError:
            return b""

    def note(self, text: bytes) -> None:
        """Add a line of our own to the log of the running call."""
        try:
            with open(self._log_path, "ab") as log:
                log.write(text)
        except OSError:
            pass

    def cut_bytes(self) -> int:
        """How many bytes were cut from the log of the call that has just ended."""
        cut, self._cut_bytes = self._cut_bytes, 0
        return cut
