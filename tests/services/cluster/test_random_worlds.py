"""Three servers and three pilots while everything goes wrong that can: lines cut, calls lost, late or twice, servers
killed, stopped past their time and taken over, pilots that go from front to front. Each seed is a world of its own.

The pilots count their leases as real ones do. At no moment may two attempts of a job run; a result has one verdict,
however often it is told; and when all is well again, every job has ended once."""

import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mendflow.core.model.errors import RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import JobState, Outcome
from mendflow.core.model.sync import SyncAnswer
from tests.examples import examples
from tests.services.cluster.world import LEASE_MS, Hand, Line, ServerProcess, World, spin

JOBS = 10
PROMISE_MS, TAKEOVER_MS = LEASE_MS // 10, LEASE_MS // 3
STEPS, SEEDS = 150, examples(40)
LEASE_OVER = Outcome(fault=Fault(name="leaseOver", category=Category.RESOURCE, message="its lease ended"))


class Runner(Hand):
    """A pilot that runs what it holds, as long as its lease lasts."""

    def __init__(self, world: World, name: str, front: str) -> None:
        super().__init__(world, name, front)
        self.running: dict[JobId, int] = {}
        self.good: set[tuple[JobId, int]] = set()  # attempts that ended well
        self.verdicts: dict[tuple[JobId, int], bool] = {}
        self.answers: list[SyncAnswer] = []  # on their way to it

    def hear(self, answer: SyncAnswer) -> None:
        for refs, verdict in ((answer.accepted, True), (answer.refused, False)):
            for ref in refs:
                if (ref.job, ref.fence) in self.good:
                    before = self.verdicts.setdefault((ref.job, ref.fence), verdict)
                    assert before == verdict, f"{ref}: accepted {before}, then {verdict}"
        super().hear(answer)
        self.go_on()

    def go_on(self) -> None:
        """Stop what may not run any more, and start what may."""
        over = self.world.time.at >= self.stop_at
        for job, fence in list(self.running.items()):
            if self.held.get(job) != fence:
                del self.running[job]  # lost to it
            elif over:
                del self.running[job]
                self.end(job, LEASE_OVER)
        if not over:
            self.running |= self.held

    def finish(self, job: JobId) -> None:
        self.good.add((job, self.running.pop(job)))
        self.end(job)


class Storm:
    """Pilots speak, jobs end, and every now and then something goes wrong or well again."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.calm = False
        self.cuts: set[tuple[str, str]] = set()  # lines that nothing comes through
        self.stopped: set[str] = set()  # servers that do nothing, and what is said to them waits
        self.fading: set[str] = set()  # servers that go on, and their beats do not reach the store
        self.mute: set[str] = set()  # pilots that nobody hears
        self.beats: dict[str, int] = {name: world.time.at for name in world.servers}
        self.pilots = [Runner(world, name, front) for name, front in (("p", "a"), ("q", "b"), ("r", "b"))]
        world.fate = self.fate

    def fate(self, one: str, other: str) -> str:
        if other not in self.world.up:
            return Line.LOST
        if self.calm:
            return Line.FINE
        if other in self.stopped:
            return Line.LATE
        if (one, other) in self.cuts:
            return Line.LOST
        return self.chance.choice([Line.FINE] * 16 + [Line.LOST, Line.DEAF, Line.LATE, Line.TWICE])

    # Time

    def tick(self) -> None:
        """Servers beat, pilots see to their leases, and nothing runs twice."""
        now = self.world.time.at
        for name, server in self.world.servers.items():
            if name in self.world.up and name not in self.stopped | self.fading:
                self.beats[name] = now
                server.document.waiting, server.document.beat = len(server.meta.queue), server.document.beat + 1
            server.promises = now - self.beats[name] < PROMISE_MS and name in self.world.up
        self.check()

    def check(self) -> None:
        for pilot in self.pilots:
            pilot.go_on()
        running = [(job, fence, pilot.name) for pilot in self.pilots for job, fence in pilot.running.items()]
        jobs = [job for job, _, _ in running]
        assert len(jobs) == len(set(jobs)), f"two attempts of a job run at once: {sorted(running)}"

    async def turn(self) -> None:
        """A fifth of a second, more or less."""
        await self.world.time.pass_by(self.chance.choice([50, 150, 250, 400]), self.tick)
        for pilot in self.pilots:
            if pilot.name not in self.mute:
                await self.speak(pilot)
            elif self.chance.random() < 0.1:
                self.mute.discard(pilot.name)
            for job in sorted(pilot.running):
                if self.calm or self.chance.random() < 0.04:
                    pilot.finish(job)
            self.check()
        await self.arrivals()
        await self.take_over()
        self.check()

    # What pilots do

    async def speak(self, pilot: Runner) -> None:
        front, request = pilot.front, pilot.request(want=self.chance.randint(0, 2))
        fate = self.fate(pilot.name, front)
        if fate == Line.LATE:
            self.world.late.append(lambda: self.call(front, lambda server: server.exchange.sync(request, "token")))
        if fate in (Line.LOST, Line.LATE):
            answer = None
        else:
            answer = await self.call(front, lambda server: server.exchange.sync(request, "token"))
        if answer is None or fate == Line.DEAF:
            if self.chance.random() < 0.3:
                pilot.front = self.chance.choice(sorted(self.world.servers))
        elif self.calm or self.chance.random() < 0.9:
            pilot.hear(answer)
        else:
            pilot.answers.append(answer)

    async def call(
        self, name: str, ask: Callable[[ServerProcess], Coroutine[Any, Any, SyncAnswer]]
    ) -> SyncAnswer | None:
        try:
            return await ask(self.world.servers[name])
        except RequestError:
            return None

    async def arrivals(self) -> None:
        """What was late comes out of the network, whoever is there by now."""
        for pilot in self.pilots:
            if pilot.answers and self.chance.random() < 0.3:
                pilot.hear(pilot.answers.pop(self.chance.randrange(len(pilot.answers))))
        if self.world.late and self.chance.random() < 0.3:
            await self.world.late.pop(self.chance.randrange(len(self.world.late)))()

    # What goes wrong

    async def step(self) -> None:
        if self.chance.random() < 0.25:
            await self.chance.choice(
                [self.cut, self.stop_or_wake, self.fade_or_recover, self.kill_or_start, self.hush]
            )()
        await self.turn()

    async def hush(self) -> None:
        self.mute.add(self.chance.choice(self.pilots).name)

    async def cut(self) -> None:
        self.cuts ^= {(self.chance.choice("abcpqr"), self.chance.choice("abc"))}

    async def stop_or_wake(self) -> None:
        name = self.chance.choice("abc")
        if name in self.stopped:
            self.stopped.discard(name)
            self.tick()
        elif self.others_live(name):
            self.stopped.add(name)

    async def fade_or_recover(self) -> None:
        name = self.chance.choice("abc")
        if name in self.fading:
            await self.recover(name)
        elif self.others_live(name):
            self.fading.add(name)

    async def recover(self, name: str) -> None:
        """Its next beat is refused if somebody has closed it: then nothing in its memory is its own any more."""
        self.fading.discard(name)
        if name in self.world.closed:
            await self.kill(name)
            await self.start(name)
        self.tick()

    def others_live(self, name: str) -> bool:
        bad = self.stopped | self.fading
        return name in self.world.up - bad and len(self.world.up - bad) > 1

    async def kill_or_start(self) -> None:
        name = self.chance.choice("abc")
        if name not in self.world.up:
            await self.start(name)
        elif self.others_live(name):
            await self.kill(name)

    async def kill(self, name: str) -> None:
        server = self.world.servers[name]
        server.ledger.give_up("killed")
        await self.world.kill(name)
        server.promises = False

    async def start(self, name: str) -> None:
        """It comes back with nothing in memory, and claims what is still its own."""
        server = self.world.servers[name]
        self.world.closed.discard(name)
        server.build()
        self.world.up.add(name)
        self.stopped.discard(name)
        self.beats[name] = self.world.time.at
        server.promises = True
        for case, home in self.world.homes.items():
            if home == name:
                await server.take_up(case)

    async def take_over(self) -> None:
        """Whoever was silent for too long is closed; a server whose ledger broke reads everything again."""
        for name, beat in self.beats.items():
            silent = self.world.time.at - beat >= TAKEOVER_MS
            if silent and name in self.fading:
                self.world.closed.add(name)
            elif silent and name in self.world.up:
                await self.kill(name)
                self.stopped.discard(name)
        living = sorted(self.world.up - self.stopped - self.fading)
        for name in living:
            if self.world.servers[name].broken:
                await self.kill(name)
                await self.start(name)
        for case, home in list(self.world.homes.items()):
            gone = home not in self.world.up and self.world.time.at - self.beats[home] >= TAKEOVER_MS
            if gone or home in self.world.closed:
                await self.world.servers[self.chance.choice(living)].take_up(case)

    # Afterwards

    async def clear_up(self) -> None:
        """Everybody is there, every line holds, what is on its way arrives; then all jobs must come to their end."""
        self.stopped.clear()
        for name in sorted(self.fading):
            await self.recover(name)
        self.calm = True
        self.tick()
        for name in "abc":
            if name not in self.world.up:
                await self.start(name)
        while self.world.late:
            await self.world.late.pop()()
        self.mute.clear()
        for _ in range(200):
            await self.turn()
            if not any(pilot.held or pilot.results for pilot in self.pilots) and not self.waiting():
                return

    def waiting(self) -> int:
        return sum(len(server.meta.queue) for server in self.world.servers.values())


@pytest.mark.law
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_no_two_attempts_of_a_job_run_at_once_and_every_job_ends_once(seed: int) -> None:  # JS-1 JS-6 JS-7
    chance = random.Random(seed)
    async with World("a", "b", "c") as world:
        for name in "abc":
            await world.servers[name].begin(f"case{name}", JOBS)
            world.servers[name].document.waiting = 1
        storm = Storm(world, chance)
        for _ in range(STEPS):
            await storm.step()
        await storm.clear_up()
        await spin()
        for given in world.given:
            job = await world.job(given.id)
            ends = [attempt.end for attempt in job.history]
            assert job.state is JobState.COMPLETED and ends.count("completed") == 1, (given.id, ends)
        assert {CaseId(case) for case in world.homes} == {"casea", "caseb", "casec"}
