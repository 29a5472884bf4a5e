"""A slot's warm Python interpreter: runs function calls one after another and returns plain data.

Arguments and results are JSON; nothing is pickled. Before each call the worker writes the call's number to shared
memory, and only then checks whether the slot has taken that call back: so at any moment, and after any crash, the slot
knows exactly which call has started."""

import errno
import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.data.path_arguments import PLACED, paths_of_argument
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.references import foreign_reference, malformed_reference, referenced_files, references_in
from mendflow.core.model.values import VALUE_BYTES_MAX, Value, check_value, is_spilled
from mendflow.pilot.cache.entries import GUESTS
from mendflow.pilot.files.work_folder import remove_tree
from mendflow.pilot.slot.faults import leftover_fault
from mendflow.pilot.slot.kept_attempts import is_worth_keeping, kept_call, mark_kept
from mendflow.pilot.slot.limits import lower_soft_limits
from mendflow.pilot.slot.logs import SHIPPED_BYTES, is_stored
from mendflow.pilot.slot.messages import CallBatch, CallResult, FrameReader, FunctionCall, frame
from mendflow.pilot.slot.outputs import spill
from mendflow.pilot.slot.processes import MillisecondRounder, Reaper, become_reaper, die_with_parent
from mendflow.pilot.slot.reports import take_report
from mendflow.pilot.worker.folder_modules import FolderModules
from mendflow.pilot.worker.function_faults import ArgumentMissing, CallSetupFailed, fault_of, traceback_of
from mendflow.pilot.worker.functions import FunctionLoader
from mendflow.pilot.worker.plain_data import to_plain_data
from mendflow.pilot.worker.progress import CallProgress

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Worker:
    def __init__(
        self, link: socket.socket, progress: CallProgress, *, log: str, cwd: str, cache: str, keep_failed: bool
    ) -> None:
        self._link = link
        self._progress = progress
        self._cwd = cwd
        self._cache = cache
        self._report = os.environ.get("MENDFLOW_REPORT", "")
        self._log_path = log
        self._log = os.open(log, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._keep_failed = keep_failed
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC) if sys.platform == "linux" else -1
        modules = FolderModules(os.path.dirname(cache))
        modules.install()
        self._functions = FunctionLoader(modules)
        self._encoder = msgspec.msgpack.Encoder()
        self._streams = (sys.stdout, sys.stderr)
        self._cwd_changed_ns = 0
        self._first_cwd, self._moves = cwd, 0
        self._reaper = Reaper()
        self._env_before: dict[str, str | None] = {}
        self._limits_before: list[tuple[int, tuple[int, int]]] = []
        self._whole_ms = MillisecondRounder()

    def serve(self) -> None:
        """Run calls until the slot closes its end."""
        frames = FrameReader()
        decoder = msgspec.msgpack.Decoder(CallBatch)
        while data := self._link.recv(1 << 20):
            for encoded in frames.feed(data):
                batch = decoder.decode(encoded)
                for number, call in enumerate(batch.calls, batch.first):
                    done = self._one(number, call) if self._progress.begin(number) else CallResult(number, 0, None)
                    self._link.sendall(frame(self._encoder.encode(done)))

    def _one(self, number: int, call: FunctionCall) -> CallResult:
        started_at = time.time_ns() // 1_000_000
        before, cpu_before, clock = _peak_bytes(), _cpu_us(), time.perf_counter_ns()
        fault: Fault | None = None
        outputs: Value = None
        spills: list[str] = []
        crash, stage = "", AttemptStage.START
        try:
            self._enter(call)
            function, args, kwargs = self._functions.find(call), self._real(call.args), self._real(call.kwargs)
            clock, stage = time.perf_counter_ns(), AttemptStage.EXECUTION
            value = function(*args, **kwargs)
            outputs, spills, fault = _as_data(value, call, self._real)
        except BaseException as error:  # noqa: BLE001 - whatever a function raises, an exit included, is its outcome
            fault, crash = fault_of(error, stage, call.cwd or self._cwd, _peak_bytes()), traceback_of(error)
        ran_us = (time.perf_counter_ns() - clock) // 1000
        code_mismatch, undeclared_reads = self._functions.used(call)
        left = self._end_of_children()
        log, log_bytes, is_long = self._take_log(call, crash)
        kept = fault is not None and self._keep_folder(call, fault)
        self._leave(call)
        after = _peak_bytes()
        measures = Measurements(
            started_at=started_at,
            ended_at=time.time_ns() // 1_000_000,
            cpu_ms=self._whole_ms.of(_cpu_us() - cpu_before),
            peak_bytes=after if after > before else self._resident_bytes(),
            ran_ms=ran_us // 1000,
            printed_bytes=log_bytes,
        )
        tail = log[-SHIPPED_BYTES:]
        if left and fault is None:
            fault, outputs, spills = leftover_fault(left), None, []
        if fault is not None:
            fault = msgspec.structs.replace(fault, log_tail=tail)
        folder = call.attempt_folder if kept else ""
        outcome = Outcome(
            fault=fault,
            outputs=outputs,
            log_tail=tail,
            measures=measures,
            folder=folder,
            code_mismatch=code_mismatch,
            undeclared_reads=undeclared_reads,
        )
        return CallResult(number, ran_us, outcome, spills, self._take_report(), is_long, kept)

    def _enter(self, call: FunctionCall) -> None:
        self._env_before, self._limits_before = {}, []
        try:
            os.environ.update(call.names)
            if call.env:
                self._env_before = {name: os.environ.get(name) for name in call.env}
                os.environ.update(call.env)
            os.chdir(call.cwd or self._cwd)
            self._limits_before = lower_soft_limits(call.limits)
        except (OSError, ValueError) as error:
            raise CallSetupFailed(error) from None

    def _leave(self, call: FunctionCall) -> None:
        """Restore what a call may have changed, for the next one."""
        for kind, before in self._limits_before:
            resource.setrlimit(kind, before)
        if call.env:
            for name, value in self._env_before.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        sys.stdout, sys.stderr = self._streams
        try:
            if os.stat(self._cwd).st_mtime_ns != self._cwd_changed_ns:
                _empty(self._cwd)
                self._cwd_changed_ns = os.stat(self._cwd).st_mtime_ns
        except OSError:
            self._move()

    def _move(self) -> None:
        """Move to another folder: the call has removed this one, or left in it what cannot be removed."""
        self._moves += 1
        self._cwd, self._cwd_changed_ns = f"{self._first_cwd}.{self._moves}", 0
        try:
            os.makedirs(self._cwd, exist_ok=True)
        except OSError:
            pass  # the next call cannot enter it, and reports that

    def _real(self, value: Any) -> Any:
        """The data with the content of spilled values in place of their references, and paths in the job's folder in
        place of what stands for them."""
        if isinstance(value, list):
            return [self._real(element) for element in value]
        if isinstance(value, dict):
            digest = value.get("$spilled")
            if isinstance(digest, str):
                kept = os.path.join(self._cache, digest)
                return _kept_value(kept if os.path.exists(kept) else os.path.join(self._cache + GUESTS, digest))
            real = {key: self._real(element) for key, element in value.items()}
            return _paths(real) if isinstance(real.get(PLACED), str) else real
        return value

    def _take_log(self, call: FunctionCall, crash: str) -> tuple[str, int, bool]:
        """The end of the output since the last call, and of how it crashed; its length; and whether that is more than
        travels with the result: then the attempt has the file, and otherwise it is emptied."""
        for stream in self._streams:
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        size = os.fstat(self._log).st_size
        if not size:
            return crash, 0, False
        tail = os.pread(self._log, SHIPPED_BYTES, max(0, size - SHIPPED_BYTES))
        is_long = is_stored(size + len(crash), tail) and self._hand_over_log(call, crash)
        if not is_long:
            os.ftruncate(self._log, 0)
        return tail.decode(errors="replace") + crash, size, is_long

    def _hand_over_log(self, call: FunctionCall, crash: str) -> bool:
        """Let the attempt have the file that was printed to, and print to another."""
        try:
            if crash:
                os.write(self._log, crash.encode(errors="replace"))
            os.rename(self._log_path, f"{call.attempt_folder}.log")
            another = os.open(self._log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            return False  # a full disk: the end of it travels with the result
        for stream in (1, 2):
            os.dup2(another, stream)
        os.close(self._log)
        self._log = another
        return True

    def _keep_folder(self, call: FunctionCall, fault: Fault) -> bool:
        """Leave the folder of a failed call for people to look into, if that is wanted and worth it. One that had none
        of its own gets the one that all calls work in, and they get another."""
        if not self._keep_failed or not is_worth_keeping(fault):
            return False
        try:
            if not call.cwd:
                os.rename(self._cwd, call.attempt_folder)
                os.mkdir(self._cwd)
                self._cwd_changed_ns = 0
        except OSError:
            return False  # it is gone, or there is no room: the next call finds that out for itself
        return mark_kept(kept_call(call, fault, os.environ))

    def _take_report(self) -> bytes:
        """The values that the call reported, usually none; empties the file."""
        try:
            return take_report(self._report) if os.stat(self._report).st_size else b""
        except OSError:
            return b""

    def _end_of_children(self) -> list[int]:
        """Kill the processes that the call left, and wait for them; usually there are none, which one system call
        shows. Returns those that could not be killed."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return []
        return self._reaper.kill_below()

    def _resident_bytes(self) -> int:
        if self._statm < 0:
            return _peak_bytes()
        return int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE_BYTES


def _as_data(value: Value, call: FunctionCall, real: Callable[[Value], Value]) -> tuple[Value, list[str], Fault | None]:
    """The result as plain data: as it is, spilled, or a fault because it is not data. `real` gives arguments with the
    content of spilled values."""
    if value is None:
        return None, [], None
    try:
        encoded, plain = to_plain_data(value)
        if why := check_value(plain):
            raise ValueError(why)
        if why := _bad_reference(encoded, plain, call, real):
            return None, [], _not_data(f"what {call.module}.{call.name} returned cannot be kept: {why}")
        if len(encoded) > VALUE_BYTES_MAX:
            os.makedirs(call.attempt_folder, exist_ok=True)
            reference, path = spill(encoded, call.attempt_folder, 0)
            return reference, [path], None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(value, Path):
            return None, [], _not_data(_path_returned(value, call))
        message = f"{call.module}.{call.name} returned a {type(value).__name__}, which is not data: {error}. The return"
        return None, [], _not_data(f"{message} value must be JSON-serializable.")
    return plain, [], None


def _path_returned(path: Path, call: FunctionCall) -> str:
    """A file is left by its name in the job's folder, which is gone when the job has ended."""
    return (
        f"{call.module}.{call.name} returned a path; a file that a job leaves is named where the job is defined, "
        f'@job(files="{path.name}"), and passed on as {call.name}(...).file()'
    )


def _paths(argument: dict[str, Value]) -> Any:
    """The Path of a file in the job's folder, or a list of them."""
    found = paths_of_argument(argument)
    if isinstance(found, list):
        return [None if path is None else Path(path) for path in found]
    return None if found is None else Path(found)


def _not_data(message: str) -> Fault:
    return Fault(name="notData", category=Category.OUTPUT, message=message, stage=AttemptStage.STAGE_OUT)


def _bad_reference(encoded: bytes, plain: Value, call: FunctionCall, real: Callable[[Value], Value]) -> str:
    """What is wrong with references to files in a result, or nothing. The server checks what they name, unless it
    cannot: it sees neither a result that is spilled nor what a spilled argument refers to."""
    if b'"$' not in encoded:
        return ""
    if flaw := malformed_reference(plain):
        return flaw
    given = [call.args, call.kwargs]
    unseen = len(encoded) > VALUE_BYTES_MAX or any(is_spilled(reference) for _, reference in references_in(given))
    return foreign_reference(plain, set(referenced_files(real(given)))) if unseen else ""


def _kept_value(path: str) -> Value:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read())
    except OSError as error:
        raise ArgumentMissing(f"a large argument could not be read: {error}") from None


def _empty(folder: str) -> None:
    """Remove what a call left in the folder, so that the next call does not find it."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            remove_tree(path)
            if os.path.exists(path):
                raise OSError(errno.EBUSY, "it cannot be removed", path)
        else:
            os.unlink(path)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def _cpu_us() -> int:
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((time.process_time() + below.ru_utime + below.ru_stime) * 1_000_000)


def main() -> None:
    """`process.py LINK PROGRESS LOG CWD CACHE KEEP`: a descriptor, a mapped file, three paths, and whether folders of
    failed calls are kept. The standard streams already go to LOG."""
    die_with_parent()
    become_reaper()
    link, progress, log, cwd, cache, keep = sys.argv[1:7]
    sys.argv[1:] = []
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]  # always text
    connection = socket.socket(fileno=int(link))
    connection.set_inheritable(False)
    Worker(connection, CallProgress(progress), log=log, cwd=cwd, cache=cache, keep_failed=keep == "keep").serve()


if __name__ == "__main__":
    main()
