"""Runs one shell command in its own folder and reads its output through one pipe: bounded, in the order written.

The slot runs one attempt at a time and has no threads, so it may change into the attempt's folder to start the command.
That permits posix_spawn, the fastest way to start a process: nothing of this interpreter is copied."""

import fcntl
import os
import signal
import sys
from itertools import chain
from typing import Any

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.text_masks import StreamMask
from mendflow.core.model.values import Value
from mendflow.pilot.files.secret_files import remove_secret_files
from mendflow.pilot.files.work_folder import FOLDER_MODE, WorkFolder, reuse_folder
from mendflow.pilot.isolation.confinement import CONFINED_ENDS
from mendflow.pilot.slot.background_work import ADVICE, LeftRunning
from mendflow.pilot.slot.confining import confine, memory_of
from mendflow.pilot.slot.container_command import STARTED_END, USAGE_END, ContainerCommand, ContainerUsage
from mendflow.pilot.slot.declared_outputs import DeclaredOutputs, find_outputs
from mendflow.pilot.slot.exit_hints import exit_hint
from mendflow.pilot.slot.faults import NO_ROOM, exit_fault, full_disk_fault, leftover_fault, stop_fault
from mendflow.pilot.slot.kept_attempts import KeptAttempt, is_worth_keeping, mark_kept, secret_names, writable
from mendflow.pilot.slot.logs import SHIPPED_BYTES, LogFile, LogTail, is_stored
from mendflow.pilot.slot.memory import OutOfMemoryKills
from mendflow.pilot.slot.messages import FinishedAttempt, SlotWork
from mendflow.pilot.slot.monitor import AttemptMonitor
from mendflow.pilot.slot.outputs import BadOutput, OutputNotes, read_outputs, within_bounds
from mendflow.pilot.slot.parent_death import KillOnParentDeath
from mendflow.pilot.slot.processes import Reaper
from mendflow.pilot.slot.script_shells import ScriptShells
from mendflow.pilot.slot.secret_masking import mask_kept
from mendflow.pilot.slot.settings import SlotSettings

PIPE_BYTES = 1 << 18
SCRIPT_END = ".script"
KEYS_TOLD_MAX = 10
_DEFAULT_SIGNALS = [signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD]
if hasattr(signal, "SIGXFSZ"):
    _DEFAULT_SIGNALS.append(signal.SIGXFSZ)


class ShellRun:
    """A running command. `outlet` is the descriptor to poll; call `read` for it."""

    def __init__(
        self,
        work: SlotWork,
        work_folder: WorkFolder,
        environment: dict[str, str],
        parent_death: KillOnParentDeath,
        shells: ScriptShells,
        settings: SlotSettings,
        *,
        spare: str = "",
    ) -> None:
        """`spare` is the folder of an ended attempt, which this one may reuse."""
        self.work = work
        self._settings = settings
        self.folder = work_folder.attempt(work.job, work.fence)
        self.report = f"{self.folder}.report"
        self._log = LogFile(f"{self.folder}.log", bytes_max=settings.log_bytes_max)
        self._outlet = -1
        self.tail = LogTail(SHIPPED_BYTES)
        self._mask = work.secrets.mask() if work.secrets else None
        self._stream_mask = StreamMask(self._mask) if self._mask is not None else None
        self._script = ""
        self.took_over = bool(spare) and not work.own_folder and reuse_folder(spare, self.folder)
        if not work.own_folder and not self.took_over:
            os.makedirs(self.folder, FOLDER_MODE, exist_ok=True)
        self._host_env = environment
        self._confinement = confine(settings, work_folder, work)
        if self._confinement is not None:
            files = [f"{self.folder}.output", self.report, f"{self.folder}{SCRIPT_END}"]
            self._confinement.prepare(files=files, folders=memory_of(work, self.folder))
            environment = self._confinement.variables(environment)
        self._env = environment | work.env | self._names()
        self._container: ContainerCommand | None = None
        if work.container is not None:
            account = self._confinement.account if self._confinement is not None else None
            pilot = environment.get("MENDFLOW_PILOT", "")
            self._container = ContainerCommand(work, work.container, self.folder, pilot, account)
        self.pid = self._spawn(parent_death, shells)
        parent_death.hold(self.pid)

    def _spawn(self, parent_death: KillOnParentDeath, shells: ScriptShells) -> int:
        program, arguments, env = self._command(shells)
        os.chdir(self.folder)
        outlet, inlet = os.pipe()
        try:
            os.set_blocking(outlet, False)
            pid = os.posix_spawn(
                program,
                arguments,
                env,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, inlet, 1),
                    (os.POSIX_SPAWN_DUP2, inlet, 2),
                    *parent_death.file_actions(),
                ],
                setsigdef=_DEFAULT_SIGNALS,
                setsigmask=[],
                **own_session(),
            )
        except BaseException:
            os.close(outlet)
            if self._container is not None:
                self._container.withdraw()
            raise
        finally:
            os.close(inlet)
        self._outlet = outlet
        return pid

    def _command(self, shells: ScriptShells) -> tuple[str, list[str], dict[str, str]]:
        work, script, env = self.work, f"{self.folder}{SCRIPT_END}", self._env
        if self._container is not None:
            start, env = self._container.process(script, work.env | self._names(), self._host_env)
        else:
            start = shells.process(work.shell, work.command, script, env=env, limits=work.limits)
        if start.from_file:
            self._script = script
            with open(script, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(work.command)
        if self._confinement is not None and self._container is None:
            words = self._confinement.words(start.program, start.arguments[1:])
            return words[0], words, env
        return start.program, start.arguments, env

    def _names(self) -> dict[str, str]:
        return {
            "MENDFLOW_JOB": self.work.job,
            "MENDFLOW_CASE": self.work.case,
            "MENDFLOW_ITEM": self.work.item,
            "MENDFLOW_ATTEMPT": str(self.work.number),
            "MENDFLOW_FENCE": str(self.work.fence),
            "MENDFLOW_OUTPUT": f"{self.folder}.output",
            "MENDFLOW_REPORT": self.report,
        }

    def pids(self, below: list[int]) -> list[int]:
        """The job's own processes, of those below this one; those of a container's runtime are not."""
        return below if self._container is None else self._container.pids(below)

    def end_container(self, status: int, *, stopped: bool) -> None:
        """All processes are dead: nothing of the container is to be left."""
        if self._container is not None:
            self._container.end(status, stopped=stopped)

    @property
    def outlet(self) -> int:
        """The descriptor to read from; -1 when its other end was closed."""
        return self._outlet

    def read(self, times: int = 4) -> bool:
        """Read what has arrived; False when the stream has ended and its descriptor is closed."""
        for _ in range(times):
            try:
                data = os.read(self._outlet, PIPE_BYTES)
            except BlockingIOError:
                return True
            if not data:
                self._close()
                return False
            if self._stream_mask is not None:
                data = self._stream_mask.feed(data)
            self._log.feed(data)
            self.tail.feed(data)
            if self._log.seen == len(data) and sys.platform == "linux":
                _widen(self._outlet)
        return True

    def note(self, text: bytes) -> None:
        """Add a line of our own to the job's log."""
        text = self._mask.mask_bytes(text) if self._mask is not None else text
        self._log.feed(text)
        self.tail.feed(text)

    def _add_line(self, text: str) -> None:
        """Add a line to the log of a job that is over. It may say command lines of the job."""
        line = (self._mask.mask(text) if self._mask is not None else text).encode()
        self.tail.feed(line)
        self._log.add_last(line)

    @property
    def reported(self) -> bool:
        return os.access(self.report, os.F_OK)

    def beside(self) -> list[str]:
        """The suffixes of the pilot's files that may exist beside the folder; usually few."""
        ends = [".log"] if self._log.made else []
        if self.reported:
            ends.append(".report")
        if self._script:
            ends.append(SCRIPT_END)
        if self._container is not None:
            ends += [STARTED_END, USAGE_END]
        if self._confinement is not None:
            ends += [SCRIPT_END, *CONFINED_ENDS]
        return [*ends, ".output"]

    def _close(self) -> None:
        os.close(self._outlet)
        self._outlet = -1

    def drain(self) -> None:
        """All processes of the job are dead: read what is left in the pipe."""
        if self._outlet >= 0 and self.read(times=64):
            self._close()
        if self._stream_mask is not None and (rest := self._stream_mask.end()):
            self._log.feed(rest)
            self.tail.feed(rest)
        self._log.close()

    def done(
        self,
        monitor: AttemptMonitor,
        reaper: Reaper,
        kernel: OutOfMemoryKills,
        ended_at: int,
        left: list[int],
        background: LeftRunning | None,
    ) -> FinishedAttempt:
        """Its outcome. Call this when its processes are dead, except those in `left`, the pipe is drained and the
        reports are read. `background` is what the script had not waited for."""
        if self._confinement is not None:
            self._confinement.reclaim()
        remove_secret_files(self.folder, self.work.secrets.files)
        ran_us = monitor.ran_us()
        measures = Measurements(
            started_at=monitor.started_at,
            ended_at=ended_at,
            cpu_ms=reaper.cpu_ms(),
            read_bytes=reaper.read_bytes,
            written_bytes=reaper.written_bytes,
            peak_bytes=reaper.peak_of_children(seen_bytes=monitor.peak_bytes),
            ran_ms=ran_us // 1000,
            printed_bytes=self._log.seen,
        )
        if self._container is not None:
            measures = self._container_measures(self._container, measures, monitor)
        status = reaper.ended.get(self.pid, 0)
        outputs: Value = None
        spills: list[str] = []
        fault = self._ended(monitor, status, measures, kernel)
        if fault is None and left:
            fault = leftover_fault(left)
        found = DeclaredOutputs({}, {})
        if fault is None and self.work.files:
            found = find_outputs(self.work.files, self.folder, self.work.file_lists, self.work.inputs)
            fault = found.fault if background is None else _with_background(found, background)
        if fault is None:
            outputs, spills, fault = self._outputs()
        if background is not None:
            self._add_line(f"[mendflow: {background.sentence()}; {ADVICE}]\n")
        tail = self.tail.text()
        if fault is not None:
            fault = msgspec.structs.replace(fault, log_tail=tail)
        exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) and monitor.end is None else None
        values = monitor.reports.values if monitor.reports is not None else {}
        kept = fault is not None and self._keep_folder(fault)
        outcome = Outcome(
            fault=fault,
            outputs=outputs,
            exit_code=exit_code,
            log_tail=tail,
            measures=measures,
            values=values,
            folder=self.folder if kept else "",
            left_running=background.sentence() if background is not None else "",
            image=self._container.digest if self._container is not None else "",
        )
        if self._mask is not None:
            outcome = self._mask.mask_outcome(outcome)
        files, lists = (found.files, found.lists) if fault is None else ({}, {})
        encoded = msgspec.Raw(msgspec.msgpack.encode(outcome))
        log, work = self._log.made and is_stored(self._log.seen, self.tail.content()), self.work
        folder = bool(files or lists or spills or kept or log or work.linked)
        return FinishedAttempt(
            work.job,
            work.fence,
            encoded,
            ran_us,
            files,
            spills,
            folder,
            work.publish,
            work.staging_measures,
            lists,
            log=log,
            kept=kept,
        )

    def _container_measures(
        self, container: ContainerCommand, measures: Measurements, monitor: AttemptMonitor
    ) -> Measurements:
        """What the job used, without the programs that ran its container: as it told itself, or as was seen last."""
        usage = container.usage() or ContainerUsage(cpu_ms=monitor.seen_cpu_ms)
        return msgspec.structs.replace(
            measures,
            cpu_ms=usage.cpu_ms,
            read_bytes=usage.read_bytes,
            written_bytes=usage.written_bytes,
            peak_bytes=monitor.peak_bytes,
        )

    def _keep_folder(self, fault: Fault) -> bool:
        """Leave the folder of a failed attempt for people to look into, if that is wanted and worth it."""
        if not self._settings.keep_failed or not is_worth_keeping(fault):
            return False
        work = self.work
        if self._mask is not None:
            mask_kept(self.folder, self._mask)
        return mark_kept(
            KeptAttempt(
                job=work.job,
                item=work.item,
                number=work.number,
                folder=self.folder,
                fault=self._mask.mask(fault.message) if self._mask is not None else fault.message,
                command=work.command,
                env=writable(self._env, work.secrets.variables),
                secrets=secret_names(self._env, work.secrets.variables),
            )
        )

    def _ended(
        self, monitor: AttemptMonitor, status: int, measures: Measurements, kernel: OutOfMemoryKills
    ) -> Fault | None:
        if monitor.end is None and status == 0:
            return None
        work, peak = self.work, measures.peak_bytes
        container = self._container if monitor.end is None else None
        if container is not None and (unstarted := container.start_fault(status, self.tail.text())) is not None:
            return unstarted
        if monitor.end is None:
            fault = exit_fault(
                status,
                self.folder,
                memory_bytes=work.memory_bytes,
                peak_bytes=peak,
                kernel_kill=kernel.look(),
                printed=self.tail.text(),
            )
            return self._with_hint(fault) if fault is not None and fault.name == "exitCode" else fault
        return stop_fault(
            monitor.end,
            wall_ms=work.wall_ms,
            memory_bytes=work.memory_bytes,
            peak_bytes=peak,
            ran_ms=measures.ran_ms,
        )

    def _with_hint(self, fault: Fault) -> Fault:
        assert fault.exit_code is not None, "a fault of an exit code has one"
        hint = exit_hint(
            fault.exit_code,
            shell=self.work.shell,
            unstaged=self.work.unstaged,
            folder=self.folder,
            log_tail=self.tail.text(),
        )
        return msgspec.structs.replace(fault, message=f"{fault.message}: {hint}") if hint else fault

    def _outputs(self) -> tuple[Value, list[str], Fault | None]:
        try:
            notes = OutputNotes()
            outputs = read_outputs(f"{self.folder}.output", notes)
            if outputs is None:
                return None, [], None
            for sentence in notes.sentences()[:KEYS_TOLD_MAX]:
                self._add_line(f"[mendflow: {sentence}]\n")
            if self._mask is not None:
                outputs = self._mask.mask_value(outputs)
            kept, spills = within_bounds(outputs, self.folder)
            return kept, spills, None
        except (BadOutput, RecursionError, OverflowError) as error:
            message = f"the file $MENDFLOW_OUTPUT cannot be read: {error}"
            return None, [], bad_output(message)
        except OSError as error:
            full = full_disk_fault(self.folder, str(error), stage=AttemptStage.STAGE_OUT, known=error.errno in NO_ROOM)
            return None, [], full or bad_output(f"$MENDFLOW_OUTPUT: {error}")


def _with_background(found: DeclaredOutputs, background: LeftRunning) -> Fault | None:
    """What is wrong with the outputs of a script that did not wait for all that it has started."""
    if found.fault is None:
        return background.fault(
            [*found.files.values(), *chain.from_iterable(each.paths for each in found.lists.values())]
        )
    return msgspec.structs.replace(found.fault, message=f"{found.fault.message}; {background.sentence()}: {ADVICE}")


def bad_output(message: str) -> Fault:
    return Fault(name="badOutput", category=Category.OUTPUT, message=message, stage=AttemptStage.STAGE_OUT)


def own_session() -> dict[str, Any]:
    """Arguments that detach a process from our terminal and process group; not every system can start one in a new
    session."""
    return {"setsid": True} if sys.platform == "linux" else {"setpgroup": 0}


def _widen(outlet: int) -> None:
    """Enlarge the pipe of a job with much output, so that job and slot wake each other less often."""
    try:
        fcntl.fcntl(outlet, 1031, PIPE_BYTES)  # F_SETPIPE_SZ; fcntl has the name only in newer versions
    except OSError:
        pass
