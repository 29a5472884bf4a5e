"""Simulated machines with their own clocks, and processes on them that can be killed, stopped and continued.

A stopped process continues exactly where it was, however much time has passed. A dead one loses its memory; the machine
notifies the other ends of its connections."""

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any

from mendflow.core.model.ids import Instant
from mendflow.sim.loop import VirtualHost, VirtualLoop, context_of

BEGINNING: Instant = 1_750_000_000_000
"""The wall-clock time at the start, on a machine whose clock is right."""

DRIFT_MAX = 0.01
"""How much faster or slower a machine's clock may run. Real clocks are off by a hundredth of that."""

SKEW_MS_MAX = 120_000
"""How far off a machine's wall clock may be."""


class Machine:
    """`rate` is how fast its clock runs, `skew_ms` the error of its wall clock."""

    def __init__(self, loop: VirtualLoop, name: str, *, rate: float = 1.0, skew_ms: int = 0) -> None:
        self.loop = loop
        self.name = name
        self.rate = rate
        self.skew_ms = skew_ms
        self.processes: list[VirtualProcess] = []
        self._booted_s = 0.0
        self.is_lost = False

    def lose(self) -> None:
        """It is gone, and never comes back."""
        self.is_lost = True
        self.power_off()

    def boot(self) -> None:
        """Restart after a power failure: the boot clock starts anew."""
        assert not any(process.alive for process in self.processes)
        self._booted_s = self.loop.true_s

    def boot_ms(self) -> int:
        """Milliseconds since boot, by its clock. It starts at one second: no clock is read sooner."""
        return 1000 + int((self.loop.true_s - self._booted_s) * self.rate * 1000)

    @property
    def boot_name(self) -> str:
        """The id of the boot clock: a new one after each power failure."""
        return f"{self.name} {self._booted_s}"

    def true_s(self, boot_ms: int) -> float:
        """The true time of that moment."""
        return self._booted_s + (boot_ms - 1000) / 1000 / self.rate

    def start(self, name: str) -> "VirtualProcess":
        process = VirtualProcess(self, f"{self.name}/{name}")
        self.processes = [each for each in self.processes if each.alive]
        self.processes.append(process)
        return process

    def power_off(self) -> None:
        for process in list(self.processes):
            process.kill()
        self.processes = []


def machine_with_clock(loop: VirtualLoop, name: str, chance: Random) -> Machine:
    """A machine whose clock runs at a rate of its own and is off, as real ones are."""
    rate = 1 + chance.uniform(-DRIFT_MAX, DRIFT_MAX)
    return Machine(loop, name, rate=rate, skew_ms=chance.randint(-SKEW_MS_MAX, SKEW_MS_MAX))


class VirtualProcess(VirtualHost):
    """`on_death` are called when it dies, in the order in which they asked to be. A `trap` catches it at the most
    awkward moment: when it has made up its mind and is about to write, to add to a journal, or to answer."""

    __slots__ = ("context", "machine", "name", "on_death", "trap")

    def __init__(self, machine: Machine, name: str) -> None:
        super().__init__(rate=machine.rate)
        self.machine = machine
        self.name = name
        self.on_death: list[Callable[[], None]] = []
        self.trap: tuple[str, Callable[[], None]] | None = None
        self.context: Context = context_of(self)

    def spawn(self, work: Coroutine[Any, Any, None], name: str = "") -> None:
        """Run something in it. An unhandled error ends the process."""
        self.machine.loop.create_task(self._run_work(work), name=name or None, context=self._copy_context())

    async def _run_work(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told to whoever judges this world
            self.machine.loop.troubles.append(f"{self.name} ends with {error!r}\n{traceback.format_exc(limit=-4)}")
            self.kill()

    def deliver(self, callback: Callable[..., object], *args: object) -> None:
        """Deliver a message: the callback runs when the process does."""
        self.machine.loop.call_soon(callback, *args, context=self._copy_context())

    def deliver_after(self, seconds: float, callback: Callable[..., object], *args: object) -> None:
        """The same, after so much true time."""
        loop = self.machine.loop
        loop.at(loop.true_s + seconds, self.deliver, callback, *args)

    def _copy_context(self) -> Context:
        return self.context.copy()

    async def reach_point(self, what: str) -> None:
        """It is about to do something irreversible."""
        if self.trap is not None and self.trap[0] == what:
            (_, happen), self.trap = self.trap, None
            happen()
            await asyncio.sleep(0)

    def stop(self) -> None:
        self.stopped = True

    def resume(self) -> None:
        if self.stopped:
            self.machine.loop.resume(self)

    def kill(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self.kept.clear()
        for tell in self.on_death:
            tell()


class WallClock:
    """The clock of a server: the wall clock once, then the machine's counter."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._offset_ms = BEGINNING + round(machine.loop.true_s * 1000) + machine.skew_ms - machine.boot_ms()

    def now(self) -> Instant:
        return self._machine.boot_ms() + self._offset_ms

    def catch_up(self, instant: Instant) -> None:
        self._offset_ms += max(0, instant - self.now())

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)


class TrueClock:
    """A correct clock, for simulations in which clocks do not matter: the running loop's time."""

    def now(self) -> Instant:
        return BEGINNING + round(asyncio.get_running_loop().time() * 1000)

    def catch_up(self, instant: Instant) -> None:
        assert instant <= self.now(), "the given time is in the future"

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)
