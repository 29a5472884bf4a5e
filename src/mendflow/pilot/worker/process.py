"""A slot's warm Python interpreter: runs function calls one after another and returns plain data.

Each call runs in a process that is forked for it, so whatever a function changes (globals, modules, the environment,
random state) is gone with it, and the next call finds what a new process would. Only what cannot change anything
(stateless_functions.py) runs in the worker itself. The worker has loaded beforehand what calls import, and executes
nothing of a flow.

Arguments and results are JSON, and files beside it; nothing is pickled. Before each call the worker writes the call's
number to shared memory, and only then checks whether the slot has taken that call back: so at any moment, and after any
crash, the slot knows exactly which call has started.

The process of a call has neither the link to the slot nor that memory. It leaves its result in a file of its own, and
the worker sends it on as the result of this call and of no other."""

import errno
import gc
import os
import resource
import shutil
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Never

import msgspec

from mendflow.core.data.path_arguments import PLACED, paths_of_argument
from mendflow.core.model.faults import AttemptStage, Fault
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.values import Value
from mendflow.pilot.cache.entries import kept_path
from mendflow.pilot.files.work_folder import remove_tree
from mendflow.pilot.slot.faults import leftover_fault
from mendflow.pilot.slot.kept_attempts import is_worth_keeping, kept_call, mark_kept
from mendflow.pilot.slot.limits import lower_soft_limits
from mendflow.pilot.slot.logs import SHIPPED_BYTES, is_stored
from mendflow.pilot.slot.messages import CallResult, FunctionCall
from mendflow.pilot.slot.processes import MillisecondRounder, Reaper, become_reaper, die_with_parent
from mendflow.pilot.slot.reports import take_report
from mendflow.pilot.worker.arguments import python_arguments
from mendflow.pilot.worker.call_link import CallLink
from mendflow.pilot.worker.folder_modules import FolderModules
from mendflow.pilot.worker.function_faults import ArgumentMissing, CallSetupFailed, fault_of, traceback_of
from mendflow.pilot.worker.functions import CODE_AS_NAMED, FunctionLoader
from mendflow.pilot.worker.memory_files import new_memory_file, take_content
from mendflow.pilot.worker.own_process import (
    become_child_of,
    die_alike,
    ending_process,
    execute_single,
    not_prepared,
    run_exit_functions,
)
from mendflow.pilot.worker.preloading import Preloading
from mendflow.pilot.worker.progress import CallProgress
from mendflow.pilot.worker.recorded_lookups import unrecorded_stat
from mendflow.pilot.worker.result_data import ResultData, result_as_data
from mendflow.pilot.worker.result_file import take_result, write_result
from mendflow.pilot.worker.stateless_functions import StatelessFunctions
from mendflow.pilot.worker.usage import usage_so_far
from mendflow.pilot.worker.value_files import GivenFiles
from mendflow.python_values.tags import has_tags

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Worker:
    def __init__(self, *, log: str, cwd: str, cache: str, keep_failed: bool) -> None:
        self._cwd = cwd
        self._cache = cache
        self._report = os.environ.get("MENDFLOW_REPORT", "")
        self._log_path = log
        self._log = os.open(log, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._keep_failed = keep_failed
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC) if sys.platform == "linux" else -1
        modules = FolderModules(os.path.dirname(cache))
        modules.install()
        self._reads = modules.reads
        self._functions = FunctionLoader(modules)
        self._stateless = StatelessFunctions()
        self._preloading = Preloading(modules)
        self._streams = (sys.stdout, sys.stderr)
        self._cwd_changed_ns = 0
        self._first_cwd, self._moves = cwd, 0
        self._reaper = Reaper()
        self._env_before: dict[str, str | None] = {}
        self._limits_before: list[tuple[int, tuple[int, int]]] = []
        self._named: FunctionCall | None = None
        self._names: dict[str, str] = {}
        self._whole_ms = MillisecondRounder()

    def serve(self, link: CallLink) -> None:
        """Run calls until the slot closes its end."""
        for batch in link.batches():
            for number, call in enumerate(batch.calls, batch.first):
                self._serve(link, number, call)

    def _serve(self, link: CallLink, number: int, call: FunctionCall) -> None:
        if not link.progress.begin(number):
            link.send(CallResult(number, 0, None))
        elif self._is_plain(call) and (function := self._stateless.find(call)) is not None:
            link.send(self._one(number, call, lambda: function, is_stateless=True))
            self._leave(call)
        else:
            self._fork(link, number, call)

    @staticmethod
    def _is_plain(call: FunctionCall) -> bool:
        """Whether it runs in this interpreter, with arguments that are as they were sent."""
        return not call.python and not has_tags([call.args, call.kwargs])

    def _fork(self, link: CallLink, number: int, call: FunctionCall) -> None:
        """Run the call in a process of its own, and wait for it. When that dies without a result, this one dies in the
        same way: to the slot they are one."""
        worker = os.getpid()
        if not call.python:
            self._preloading.foresee(call)
        gc.freeze()  # what both processes have is not looked at by the collector, so it stays shared
        place = -1
        try:
            place = new_memory_file()
            is_new = bool(call.python) or self._preloading.needs_new_interpreter(call.env)
            self._set_names(call)  # here, as each page that the new process writes to has to be copied
            child = os.fork()
        except (OSError, ValueError) as error:
            failed = CallSetupFailed(error)
            if place >= 0:
                os.close(place)
            link.send(self._one(number, call, lambda: not_prepared(failed)))
            self._leave(call)
            return
        if child == 0:
            with ending_process():
                link.progress.run_in(os.getpid())
                link.close()
                become_child_of(worker)
                if is_new:
                    self._run_in_new_interpreter(number, call, place, link.progress.path)
                self._run_in_fork(number, call, place)
        _, status = os.waitpid(child, 0)
        link.progress.run_in(0)
        result = take_result(place, number)
        if result is None:
            die_alike(status)
        self._end_of_children()
        link.send_encoded(result)
        self._reopen_log()
        self._tidy_folder()
        self._preloading.take_up()

    def _run_in_new_interpreter(self, number: int, call: FunctionCall, place: int, progress: str) -> Never:
        """Let a process that has loaded nothing take the place of this one, and run the call."""
        os.set_inheritable(place, True)
        os.environ.update(call.env)
        keep = "keep" if self._keep_failed else "tidy"
        places = [progress, self._log_path, self._cwd, self._cache]
        execute_single([str(place), *places, keep], number, msgspec.msgpack.encode(call), call.python)

    def _run_in_fork(self, number: int, call: FunctionCall, place: int) -> None:
        self._reads.continue_in_fork()
        self._preloading.begin(call.beside or call.folder)
        self.run_last(number, call, place)

    def run_last(self, number: int, call: FunctionCall, place: int) -> None:
        """Run a call in this process, which ends then, and leave its result in the file of this descriptor."""
        result = self._one(number, call, lambda: self._functions.find(call), run_exit_functions)
        self._preloading.tell(with_modules=not call.env)
        write_result(place, result)

    def _one(
        self,
        number: int,
        call: FunctionCall,
        find: Callable[[], Callable[..., Value]],
        at_end: Callable[[], None] | None = None,
        *,
        is_stateless: bool = False,
    ) -> CallResult:
        """Run a call. `find` gives its function, `at_end` is done when it has ended and before anything of it is
        collected. A stateless function starts no process, loads no code and reports nothing, so none is looked for."""
        started_at = time.time_ns() // 1_000_000
        before, clock = usage_so_far(with_children=not is_stateless), time.perf_counter_ns()
        fault: Fault | None = None
        result = ResultData()
        crash, stage = "", AttemptStage.START
        try:
            self._enter(call, is_stateless=is_stateless)
            function = find()
            if is_stateless:  # it wants plain data, and these are
                args, kwargs = self._real(call.args), self._real(call.kwargs)
            else:
                args, kwargs = self._arguments(call, function)
            clock, stage = time.perf_counter_ns(), AttemptStage.EXECUTION
            value = function(*args, **kwargs)
            with self._reads.unobserved():
                result = result_as_data(value, call, self._real)
            fault = result.fault
        except BaseException as error:  # noqa: BLE001 - whatever a function raises, an exit included, is its outcome
            fault, crash = fault_of(error, stage, call.cwd or self._cwd, usage_so_far().peak_bytes), traceback_of(error)
        ran_us = (time.perf_counter_ns() - clock) // 1000
        code = CODE_AS_NAMED if is_stateless else self._functions.used(call)
        if at_end is not None:
            at_end()
        left = [] if is_stateless else self._end_of_children()
        log, log_bytes, is_long = self._take_log(call, crash)
        kept = fault is not None and self._keep_folder(call, fault)
        used = usage_so_far(with_children=not is_stateless)
        measures = Measurements(
            started_at=started_at,
            ended_at=time.time_ns() // 1_000_000,
            cpu_ms=self._whole_ms.of(used.cpu_us - before.cpu_us),
            peak_bytes=used.peak_bytes if used.peak_bytes > before.peak_bytes else self._resident_bytes(),
            ran_ms=ran_us // 1000,
            read_bytes=used.read_bytes - before.read_bytes,
            written_bytes=used.written_bytes - before.written_bytes,
            printed_bytes=log_bytes,
        )
        tail = log[-SHIPPED_BYTES:]
        if left and fault is None:
            fault, result = leftover_fault(left), ResultData()
        if fault is not None:
            fault = msgspec.structs.replace(fault, log_tail=tail)
        folder = call.attempt_folder if kept else ""
        outcome = Outcome(
            fault=fault,
            outputs=result.outputs,
            contents=result.contents,
            log_tail=tail,
            measures=measures,
            folder=folder,
            code_mismatch=code.code_mismatch,
            undeclared_reads=code.undeclared_reads,
        )
        report = b"" if is_stateless else self._take_report()
        return CallResult(number, ran_us, outcome, result.spills, report, is_long, kept, result.content_paths)

    def _set_names(self, call: FunctionCall) -> None:
        """Set the variables that tell the function who it is, as far as others are set."""
        if call is self._named:
            return
        names, before, self._names = call.names, self._names, {}
        os.environ.update({name: value for name, value in names.items() if before.get(name) != value})
        self._named, self._names = call, names

    def _enter(self, call: FunctionCall, *, is_stateless: bool) -> None:
        """Set what the call finds around it; a stateless function can ask neither who it is nor where."""
        self._env_before, self._limits_before = {}, []
        try:
            if not is_stateless:
                self._set_names(call)
            if call.env:
                self._env_before = {name: os.environ.get(name) for name in call.env}
                os.environ.update(call.env)
            if call.cwd or not is_stateless:
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
        self._tidy_folder()

    def _tidy_folder(self) -> None:
        """Empty the folder that calls without one of their own work in, if the last has left something there."""
        try:
            if unrecorded_stat(self._cwd).st_mtime_ns != self._cwd_changed_ns:
                _empty(self._cwd)
                self._cwd_changed_ns = unrecorded_stat(self._cwd).st_mtime_ns
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

    def _arguments(self, call: FunctionCall, function: Callable[..., Value]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the function wants them. What is read for that is not read by the function."""
        with self._reads.unobserved():
            args, kwargs = self._real(call.args), self._real(call.kwargs)
            return python_arguments(function, args, kwargs, GivenFiles(self._cache), f"{call.module}.{call.name}")

    def _real(self, value: Any) -> Any:
        """The data with the content of spilled values in place of their references, and paths in the job's folder in
        place of what stands for them."""
        if isinstance(value, list):
            return [self._real(element) for element in value]
        if isinstance(value, dict):
            digest = value.get("$spilled")
            if isinstance(digest, str):
                return _kept_value(kept_path(self._cache, digest))
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
            self._open_log()
        except OSError:
            return self._copy_log(call)
        return True

    def _copy_log(self, call: FunctionCall) -> bool:
        """Where the attempt's log is not ours to make, the slot has made it."""
        try:
            with open(self._log_path, "rb") as source, open(f"{call.attempt_folder}.log", "r+b") as target:
                shutil.copyfileobj(source, target)
            os.ftruncate(self._log, 0)
        except OSError:
            return False  # a full disk: the end of it travels with the result
        return True

    def _open_log(self) -> None:
        """Print to the file that is at the log's place now."""
        another = os.open(self._log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for stream in (1, 2):
            os.dup2(another, stream)
        os.close(self._log)
        self._log = another

    def _reopen_log(self) -> None:
        """The process of a call may have given its log away, and begun another."""
        try:
            if os.stat(self._log_path).st_ino != os.fstat(self._log).st_ino:
                self._open_log()
        except OSError:
            return

    def _keep_folder(self, call: FunctionCall, fault: Fault) -> bool:
        """Leave the folder of a failed call for people to look into, if that is wanted and worth it. One that had none
        of its own gets the one that all calls work in, and they get another."""
        if not self._keep_failed or not is_worth_keeping(fault):
            return False
        try:
            if not call.cwd:
                os.rename(self._cwd, call.attempt_folder)
                os.mkdir(self._cwd)
        except OSError:
            return False  # it is gone, or there is no room: the next call finds that out for itself
        return mark_kept(kept_call(call, fault, {**os.environ, **call.names}))

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
            return usage_so_far().peak_bytes
        return int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE_BYTES


def _paths(argument: dict[str, Value]) -> Any:
    """The Path of a file in the job's folder, or a list of them."""
    found = paths_of_argument(argument)
    if isinstance(found, list):
        return [None if path is None else Path(path) for path in found]
    return None if found is None else Path(found)


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


def main() -> None:
    """`process.py LINK PROGRESS LOG CWD CACHE KEEP [NUMBER CALL]`: a descriptor, a mapped file, three paths, and
    whether folders of failed calls are kept. The standard streams already go to LOG. With the number of a call, and
    the descriptor of a file that has it, this process runs that one alone, and LINK is where it leaves the result."""
    die_with_parent()
    become_reaper()
    link, progress, log, cwd, cache, keep, *single = sys.argv[1:]
    sys.argv[1:] = []
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]  # always text
    os.set_inheritable(int(link), False)
    worker = Worker(log=log, cwd=cwd, cache=cache, keep_failed=keep == "keep")
    if single:
        with ending_process():
            number, given = single
            call = msgspec.msgpack.decode(take_content(int(given)), type=FunctionCall)
            worker.run_last(int(number), call, int(link))
    worker.serve(CallLink(socket.socket(fileno=int(link)), CallProgress(progress)))


if __name__ == "__main__":
    main()
