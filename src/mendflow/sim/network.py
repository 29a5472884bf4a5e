"""A simulated network that loses, delays, duplicates and reorders messages, and can be cut.

A call is one request and one answer, as over HTTP. Each has its own delay, so later messages overtake earlier ones. If
the target is dead, the caller learns it at once if the target's machine is up, and otherwise by its timeout; a target
learns that its caller has hung up if the network still carries that."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random

from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import VirtualProcess

Answer = tuple[int, bytes]
Handler = Callable[[str, bytes, asyncio.Event], Awaitable[Answer]]
"""Gets a path, a body, and an event that is set when the caller has hung up."""


class NoAnswer(Exception):
    """No answer arrived. Whether the request was read is unknown."""


class LineFaults:
    """The current fault rates, as shares of all messages."""

    def __init__(self) -> None:
        self.quick_s = (0.0005, 0.01)
        self.drop_share = 0.0
        self.late_share = 0.0
        self.late_s = (0.1, 4.0)
        self.double_share = 0.0


class Network:
    def __init__(self, loop: VirtualLoop, chance: Random, counts: FaultCounts) -> None:
        self.loop = loop
        self._chance = chance
        self._counts = counts
        self._listening: dict[str, tuple[VirtualProcess, Handler]] = {}
        self.faults = LineFaults()
        self.cuts: set[tuple[str, str]] = set()  # from machine to machine, by name

    def listen(self, address: str, process: VirtualProcess, handler: Handler) -> None:
        self._listening[address] = (process, handler)

    def cut(self, one: str, other: str, *, both: bool = True) -> None:
        self.cuts.add((one, other))
        if both:
            self.cuts.add((other, one))

    def mend(self, one: str, other: str) -> None:
        self.cuts -= {(one, other), (other, one)}

    async def call(self, source: VirtualProcess, address: str, path: str, body: bytes, patience_s: float) -> Answer:
        """Raises NoAnswer."""
        call = _Call(self, source, address, path, body)
        call.begin()
        try:
            async with asyncio.timeout(patience_s):
                return await call.answered
        except TimeoutError:
            raise NoAnswer(f"no answer within {patience_s:g} s") from None
        finally:
            call.hang_up()

    def target(self, address: str) -> tuple[VirtualProcess, Handler] | None:
        found = self._listening.get(address)
        return found if found is not None and found[0].alive else None

    def machine_of(self, address: str) -> str:
        found = self._listening.get(address)
        return found[0].machine.name if found is not None else address.removeprefix("http://")

    def send(self, source: str, target: str, deliver: Callable[[], None], *, sure: bool = False) -> None:
        """Send from machine to machine. `sure`: not a message, so it is never lost."""
        if (source, target) in self.cuts:
            self._counts.add("line: lost in a cut")
            return
        faults, chance = self.faults, self._chance
        if not sure and faults.drop_share and chance.random() < faults.drop_share:
            self._counts.add("line: dropped")
            return
        copies = 1
        if not sure and faults.double_share and chance.random() < faults.double_share:
            self._counts.add("line: doubled")
            copies = 2
        for _ in range(copies):
            self.loop.at(self.loop.true_s + self._travel_s(), deliver)

    def _travel_s(self) -> float:
        faults, chance = self.faults, self._chance
        if faults.late_share and chance.random() < faults.late_share:
            self._counts.add("line: late")
            return chance.uniform(*faults.late_s)
        return chance.uniform(*faults.quick_s)


class _Call:
    def __init__(self, network: Network, source: VirtualProcess, address: str, path: str, body: bytes) -> None:
        self._network = network
        self._source = source
        self._address = address
        self._path = path
        self._body = body
        self._here = source.machine.name
        self._there = network.machine_of(address)
        self._hangups: list[tuple[VirtualProcess, asyncio.Event]] = []
        self.answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        self._network.send(self._here, self._there, self._arrive)

    def _arrive(self) -> None:
        """The request has arrived: perhaps for the second time, or after the caller gave up."""
        found = self._network.target(self._address)
        if found is None:
            self._network.send(self._there, self._here, self._refuse, sure=True)
            return
        process, handler = found
        hung_up = asyncio.Event()
        if not self.answered.done():
            self._hangups.append((process, hung_up))
            process.on_death.append(self._reset)
        process.spawn(self._serve(process, handler, hung_up))

    async def _serve(self, process: VirtualProcess, handler: Handler, hung_up: asyncio.Event) -> None:
        answer = await handler(self._path, self._body, hung_up)
        await process.reach_point("answer")
        self._network.send(self._there, self._here, lambda: self._hear(answer))

    def _hear(self, answer: Answer) -> None:
        if not self.answered.done():
            self.answered.set_result(answer)

    def _reset(self) -> None:
        if not self.answered.done():
            self._network.send(self._there, self._here, self._refuse, sure=True)

    def _refuse(self) -> None:
        if not self.answered.done():
            self.answered.set_exception(NoAnswer("the connection was refused, or closed"))

    def hang_up(self) -> None:
        """The caller no longer waits; the target may be notified."""
        if not self.answered.done():
            self.answered.cancel()
        heard = not self.answered.cancelled() and self.answered.exception() is None
        for process, event in self._hangups:
            process.on_death.remove(self._reset)
            if not heard:
                self._network.send(self._here, self._there, partial(process.deliver, event.set), sure=True)
