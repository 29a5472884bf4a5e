"""What learning makes of the scenarios: the default rules are emptied, half of the scenarios are the past, and the
rules that are proposed from it are tried on the other half.

Scenarios are divided by their places, or by chance: every second one is for learning, the others for the test, and no
decision of the test is ever learned from. What stays of the default rules are their exlets, as a list of what can be
done; when to do what is learned. The scenarios of the past are played one after another; after every sixth, whatever is
proposed is adopted at once. When a few rounds have brought nothing new, the rules are as they are tried."""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.recovery.play import play
from bench.recovery.scenario import Scenario
from bench.recovery.strategies import HOUSE, Strategy
from bench.recovery.table import Row
from mendflow.core.model.errors import RequestError
from mendflow.core.model.learning import AdoptionRequest, LearningSettings, Proposal
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.sim.loop import run
from mendflow.sim.machines import TrueClock
from mendflow.stores.contract import Put, Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore

ROUNDS_MAX: Final = 12
PLAYS_PER_LOOK: Final = 6
IDLE_ROUNDS: Final = LearningSettings().failures_min
"""After so many rounds without a proposal, no failure of the past has come often enough for another one."""
RECORDED_KINDS: Final = ("decision", "job", "case")
BETWEEN_PLAYS_MS: Final = 60_000
PAST_MS: Final = 12 * 3_600_000
TIMES: Final = ("at", "ended_at", "settled_at", "finished_at", "taken_up_at", "started_at", "created_at")
LEARNED: Final = "learned rules"


class LearningResult(msgspec.Struct, frozen=True):
    """What was adopted, in its order, and the rules that it made."""

    strategy: Strategy
    adopted: list[Proposal]
    rounds: int
    plays: int


class _LaterClock(TrueClock):
    """A clock that is behind everything that was recorded."""

    def now(self) -> int:
        return super().now() + PAST_MS


class RecordedPast:
    """The decisions and jobs of all plays so far, in one store, and the service that learns from them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = MemoryStore()
        self.sets: tuple[RuleSet, ...] = (msgspec.structs.replace(HOUSE.rule_set(), trees={}),)
        self.plays = 0

    async def record(self, played: Store) -> None:
        """Take what a play has left, under names of its own."""
        self.plays += 1
        await self._store.open()
        for kind in RECORDED_KINDS:
            async for found in played.scan(kind):
                id = f"p{self.plays}-{found.id}"
                body = msgspec.json.decode(found.body)
                body["id"] = id
                if "case" in body:
                    body["case"] = f"p{self.plays}-{body['case']}"
                for name in TIMES:
                    if body.get(name):
                        body[name] += self.plays * BETWEEN_PLAYS_MS
                await self._store.write([Put(kind, id, msgspec.json.encode(body), 0)])

    def learn(self) -> list[Proposal]:
        """Adopt whatever is proposed now, until nothing is."""
        return run(self._learn())

    async def _learn(self) -> list[Proposal]:
        server = await self._server()
        adopted = []
        try:
            learning = server.runtime.learning
            await learning.recount()
            for proposal in await learning.proposals():
                if proposal.state == "open":
                    try:
                        adopted.append(await learning.adopt(proposal.id, AdoptionRequest(in_force=True), who="person"))
                    except RequestError as refused:
                        await learning.dismiss(proposal.id, refused.message, who="person")
            self.sets = tuple(server.runtime.exceptions.rules.all())
        finally:
            await server.close()
        return adopted

    async def _server(self) -> Server:
        files = FolderFileStore(self._folder / "files")
        files.open()
        [default] = [each for each in self.sets if each.name == DEFAULT_RULES]
        server = Server(
            store=self._store,
            file_store=files,
            clock=_LaterClock(),
            settings=ServerSettings(files_roots=None),
            version="scenario",
            shipped=msgspec.structs.replace(default, trees={}) if default.version == 0 else default,
        )
        await server.open()
        return server


def halves(scenarios: Sequence[Scenario], seed: int | None = None) -> tuple[list[Scenario], list[Scenario]]:
    """Every second scenario is the past; the others are the test. With a seed they are shuffled before."""
    order = list(scenarios)
    if seed is not None:
        random.Random(seed).shuffle(order)
    return order[::2], order[1::2]


def learn_from(scenarios: Sequence[Scenario]) -> LearningResult:
    """Play these scenarios again and again, with what was learned so far, until nothing new is proposed."""
    with tempfile.TemporaryDirectory() as folder:
        past = RecordedPast(Path(folder))
        adopted: list[Proposal] = []
        idle = rounds = 0
        while idle < IDLE_ROUNDS and rounds < ROUNDS_MAX:
            rounds += 1
            fresh: list[Proposal] = []
            for place, scenario in enumerate(scenarios, 1):
                play(scenario, Strategy(name=LEARNED, rules="", sets=past.sets), past.record)
                if place % PLAYS_PER_LOOK == 0 or place == len(scenarios):
                    fresh += past.learn()
            adopted += fresh
            idle = 0 if fresh else idle + 1
        return LearningResult(Strategy(name=LEARNED, rules="", sets=past.sets), adopted, rounds, past.plays)


def worse_than(rows: Sequence[Row], strategy: Strategy, other: Strategy) -> list[str]:
    """Scenarios where a strategy needs over 5 % more attempts than another, or does not cure what the other cures."""
    return [
        f"{row.scenario.name}: {row.by[strategy.name].attempts} attempts, {other.name} {row.by[other.name].attempts}"
        + ("" if row.by[strategy.name].recovered or not row.by[other.name].recovered else ", and not cured")
        for row in rows
        if row.by[strategy.name].attempts > 1.05 * row.by[other.name].attempts
        or (row.by[other.name].recovered and not row.by[strategy.name].recovered)
    ]
