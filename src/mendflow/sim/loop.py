"""An event loop in virtual time, which advances only when no callback is ready.

Every callback belongs to a simulated process, by its context. That makes process faults exact: callbacks of a stopped
process wait in the middle of whatever it was doing, and those of a dead one never run. Inside a process, time is what
its machine's clock says."""

import asyncio
import contextlib
import heapq
import sys
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

STEPS_MAX = 20_000_000
"""A run with more callbacks than this is in an endless loop."""


class VirtualHost:
    """The owner of callbacks. The outside world is one that neither stops nor dies."""

    __slots__ = ("alive", "fuse", "kept", "offset_s", "rate", "stopped")

    def __init__(self, *, rate: float = 1.0, offset_s: float = 0.0) -> None:
        self.alive = True
        self.stopped = False
        self.kept: list[_Callback | _Timer] = []
        self.fuse: tuple[int, Callable[[], None]] | None = None  # after so many of its callbacks, this happens
        self.rate = rate
        self.offset_s = offset_s

    def local_s(self, true_s: float) -> float:
        return self.offset_s + true_s * self.rate

    def true_s(self, local_s: float) -> float:
        return (local_s - self.offset_s) / self.rate


OUTSIDE = VirtualHost()
HOST: ContextVar[VirtualHost] = ContextVar("mendflow_sim_host", default=OUTSIDE)


class _Callback(asyncio.Handle):
    """A callback, and its owner."""

    __slots__ = ("host",)

    def __init__(
        self, callback: Callable[..., object], args: Sequence[Any], loop: asyncio.AbstractEventLoop, context: Context
    ) -> None:
        # As in asyncio without debug mode: millions of these are created.
        self._callback, self._args, self._loop, self._context = callback, args, loop, context
        self._cancelled, self._repr, self._source_traceback = False, None, None
        self.host = context.get(HOST, OUTSIDE)


class _Timer(asyncio.TimerHandle):
    __slots__ = ("host",)

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context,
    ) -> None:
        self._callback, self._args, self._loop, self._context = callback, args, loop, context
        self._cancelled, self._repr, self._source_traceback = False, None, None
        self._when, self._scheduled = when, False
        self.host = context.get(HOST, OUTSIDE)


class VirtualLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as code without sockets and threads needs. It gives up after `steps_max` callbacks; 0:
    never."""

    def __init__(self, *, steps_max: int = STEPS_MAX) -> None:
        self._steps_max = steps_max or sys.maxsize
        self._now_s = 0.0
        self._ready: deque[_Callback | _Timer] = deque()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._count = 0
        self._running = False
        self._closed = False
        self.steps = 0
        self._many = 1_000
        self.tasks: list[asyncio.Task[Any]] = []  # processes that may die: their lost tasks must not be cleaned up
        self.troubles: list[str] = []  # unhandled exceptions
        self.in_trouble: Callable[[BaseException], None] | None = None  # ... and who wants them at once

    # time

    @property
    def true_s(self) -> float:
        """The true time, which no simulated process knows."""
        return self._now_s

    def time(self) -> float:
        host = HOST.get()
        return self._now_s if host is OUTSIDE else host.local_s(self._now_s)

    # callbacks

    def call_soon(  # type: ignore[override]  # the library's stub names variadic types that only it can spell
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = _Callback(callback, args, self, context if context is not None else copy_context())
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = context if context is not None else copy_context()
        host = HOST.get()  # by the clock of the process that scheduled it
        due = when if host is OUTSIDE else host.true_s(when)
        handle = _Timer(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (due if due > self._now_s else self._now_s, self._count, handle))
        return handle

    def at(self, true_s: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """At a moment of true time, whatever process asks; it cannot be delayed."""
        return OUTSIDE_CONTEXT.copy().run(self.call_at, true_s, callback, *args)

    def outside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it independently of the process that asked."""
        self.create_task(work, context=OUTSIDE_CONTEXT.copy())

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is skipped when its time comes."""

    # running

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run until `main` ends; everything else stays unfinished."""
        asyncio._set_running_loop(self)
        self._running = True
        try:
            task = self.create_task(main)
            self._run_until(task)
            result: T = task.result()
            return result
        finally:
            self._running = False
            self._closed = True
            asyncio._set_running_loop(None)
            with warnings.catch_warnings():
                self._close_pending_tasks()

    def _close_pending_tasks(self) -> None:
        """Drop unfinished tasks quietly: they were meant to be lost."""
        warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that were never started
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # the library has no other way to say so
            if not task.done() and (coroutine := task.get_coro()) is not None:
                with contextlib.suppress(Exception):
                    coroutine.close()

    def _run_until(self, task: "asyncio.Task[Any]") -> None:
        """Step after step. All is in one place, since there are millions."""
        ready, steps_max = self._ready, self._steps_max
        while not task.done():
            if not ready:
                self._pass_time()
            handle = ready.popleft()
            if handle._cancelled:
                continue
            host = handle.host
            if host is not OUTSIDE:
                if not host.alive:
                    continue
                if host.stopped:
                    host.kept.append(handle)
                    continue
                if host.fuse is not None and self._check_fuse(host, handle):
                    continue
            self.steps += 1
            assert self.steps < steps_max, "this run is in an endless loop"
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as in asyncio's own loop
                self.call_exception_handler({"message": f"exception in {handle._callback!r}", "exception": error})

    def _check_fuse(self, host: VirtualHost, handle: _Callback | _Timer) -> bool:
        """Apply a fault that was set for the middle of this host's work; True if the callback has to wait."""
        assert host.fuse is not None
        left, happen = host.fuse
        if left > 0:
            host.fuse = (left - 1, happen)
            return False
        host.fuse = None
        self._ready.appendleft(handle)
        happen()
        return True

    def _pass_time(self) -> None:
        """Advance to the next timer, and take all that are due then."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        assert timers, "no event is left: nothing more can happen"
        self._now_s = due = timers[0][0]
        while timers and timers[0][0] <= due:
            self._ready.append(heapq.heappop(timers)[2])

    def resume(self, host: VirtualHost) -> None:
        """Let a stopped host continue where it was."""
        host.stopped = False
        kept, host.kept = host.kept, []
        self._ready.extend(kept)

    # tasks and futures

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        if len(self.tasks) > self._many:
            self.tasks = [each for each in self.tasks if not each.done()]
            self._many = 2 * len(self.tasks) + 1_000
        self.tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]  # the library types it as a method that gives a Future
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Runs at once: there are no threads here."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever awaits it gets it, as from a thread
            future.set_exception(error)
        return future

    # required by asyncio

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    get_debug = bool  # no debug mode; it is asked for each future, and this takes no time

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            self.troubles.append(f"{context.get('message')}: {context.get('exception')!r}")
            if self.in_trouble is not None and (error := context.get("exception")) is not None:
                self.in_trouble(error)


def context_of(host: VirtualHost) -> Context:
    """A context in which everything belongs to this host."""
    context = copy_context()
    context.run(HOST.set, host)
    return context


OUTSIDE_CONTEXT = context_of(OUTSIDE)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time."""
    return VirtualLoop().run(main)  # type: ignore[abstract]  # sockets, signals and threads are not of this world
