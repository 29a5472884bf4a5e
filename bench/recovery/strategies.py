"""What is done about failures: nothing, the same again, or what the default rules say.

Each is a house of its own with other rules; plain retry is a rule too, so that it meets every failure that the house
rules meet, and not only those of jobs that the queue has taken."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from bench.recovery.schedulers import BehindALine, FarScheduler, Line
from mendflow.core.model.rules import HOUSE as HOUSE_NAME
from mendflow.core.model.rules import RuleSet
from mendflow.formats.rules import read_rules
from mendflow.services.runtime.server import House, HouseRules
from mendflow.sim.machines import TrueClock
from mendflow.stores.files import FolderKeeper
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
    """`losses_max` is how often the queue gives a job that was lost with its pilot to another one."""

    name: str
    rules: str
    losses_max: int = 20

    def rule_set(self) -> RuleSet:
        return read_rules(self.rules) if self.rules else RuleSet(name=HOUSE_NAME)


NONE: Final = Strategy(name="none", rules="", losses_max=0)
PLAIN: Final = Strategy(name="plain retry", rules=AGAIN)
HOUSE: Final = Strategy(name="default rules", rules=(files("mendflow") / "house" / "rules.yaml").read_text())
STRATEGIES: Final = (NONE, PLAIN, HOUSE)


async def house_with(strategy: Strategy, folder: Path, line: Line, far: FarScheduler | None) -> House:
    """A house that recovers by this strategy, with its own queue behind the line, and perhaps another domain."""
    keeper = FolderKeeper(folder / "files")
    keeper.open()
    house = House(
        store=MemoryStore(),
        keeper=keeper,
        clock=TrueClock(),
        rules=HouseRules(losses_max=strategy.losses_max, files_roots=None),
        version="scenario",
        shipped=strategy.rule_set(),
        domains={"far": far} if far is not None else {},
        way_to_queue=lambda queue: BehindALine(queue, line),
    )
    await house.open()
    return house
