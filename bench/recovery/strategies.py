"""What is done about failures: nothing, the same again, or what the house rules say."""

from pathlib import Path
from typing import Final

import msgspec

from bench.recovery.schedulers import FarScheduler, Line
from bench.recovery.virtual import VirtualClock
from mendflow.services.house import House, HouseRules
from mendflow.stores.files import FolderKeeper
from mendflow.stores.memory import MemoryStore


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """`losses_max` is how often the queue gives a job that was lost with its pilot to another one."""

    name: str
    retries: int = 0
    retry_wait_ms: int = 0
    losses_max: int = 20


NONE: Final = Strategy(name="none", losses_max=0)
PLAIN: Final = Strategy(name="plain retry", retries=3, retry_wait_ms=10_000)
HOUSE: Final = Strategy(name="house rules")
STRATEGIES: Final = (NONE, PLAIN, HOUSE)


async def house_with(strategy: Strategy, folder: Path, line: Line, far: FarScheduler | None) -> House:
    """A house that recovers by this strategy, with its own queue behind the line, and perhaps another domain."""
    keeper = FolderKeeper(folder / "files")
    keeper.open()
    rules = HouseRules(losses_max=strategy.losses_max, files_roots=None)
    house = House(store=MemoryStore(), keeper=keeper, clock=VirtualClock(), rules=rules, version="scenario")
    await house.open()
    return house
