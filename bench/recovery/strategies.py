"""What is done about failures: nothing, the same again, or what the default rules say.

Each is a house of its own with other rules; plain retry is a rule too, so that it meets every failure that the house
rules meet, and not only those of jobs that the queue has taken."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from bench.recovery.schedulers import FarScheduler, LinkedScheduler, SchedulerLink
from mendflow.core.model.rules import DEFAULT_RULES as HOUSE_NAME
from mendflow.core.model.rules import RuleSet
from mendflow.formats.rules import read_rules
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.sim.machines import TrueClock
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore

AGAIN: Final = """
rules: "*"
abort:
  - if: job.id != "" && job.final && job.generation <= 3
    do:
      - wait: "${{ 10000 * (job.generation == 1 ? 1 : job.generation == 2 ? 2 : 4) }}"
      - re-submit:
"""


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """`losses_max` is how often the queue gives a job that was lost with its pilot to another one. `sets` are rule sets
    that were learned, the default rules among them."""

    name: str
    rules: str
    losses_max: int = 20
    sets: tuple[RuleSet, ...] = ()

    def rule_set(self) -> RuleSet:
        if self.sets:
            return next(each for each in self.sets if each.name == HOUSE_NAME)
        return read_rules(self.rules) if self.rules else RuleSet(name=HOUSE_NAME)


NONE: Final = Strategy(name="none", rules="", losses_max=0)
PLAIN: Final = Strategy(name="plain retry", rules=AGAIN)
HOUSE: Final = Strategy(name="default rules", rules=(files("mendflow") / "defaults" / "rules.yaml").read_text())
STRATEGIES: Final = (NONE, PLAIN, HOUSE)


async def server_with(strategy: Strategy, folder: Path, line: SchedulerLink, far: FarScheduler | None) -> Server:
    """A house that recovers by this strategy, with its own queue behind the line, and perhaps another domain."""
    file_store = FolderFileStore(folder / "files")
    file_store.open()
    server = Server(
        store=MemoryStore(),
        file_store=file_store,
        clock=TrueClock(),
        settings=ServerSettings(losses_max=strategy.losses_max, files_roots=None),
        version="scenario",
        shipped=strategy.rule_set(),
        domains={"far": far} if far is not None else {},
        way_to_queue=lambda queue: LinkedScheduler(queue, line),
    )
    await server.open()
    for rules in strategy.sets:
        if rules.name != HOUSE_NAME:
            await server.runtime.exceptions.rules.put(rules)
    return server
