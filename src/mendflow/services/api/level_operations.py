"""The part of the domain that is about levels of retries."""

from collections.abc import Sequence

from mendflow.core.model.errors import NotFound
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair_views import DrainResult, LevelView
from mendflow.services.api.engine_cases import EngineCaseOperations
from mendflow.services.recovery.levels import LevelEntry, Levels

JOBS_SHOWN = 100
ALL = "all"


class LevelOperations(EngineCaseOperations):
    async def levels(self, *, sight: Sight = EVERYTHING) -> list[LevelView]:
        levels = self._server.runtime.levels
        return [_level(levels, level, await self._entries(level, sight)) for level in sorted(levels.counts())]

    async def _entries(self, level: int | None, sight: Sight) -> list[LevelEntry]:
        return [each for each in self._server.runtime.levels.entries(level) if await self.is_seen(each.case, sight)]

    async def drain(self, level: str, *, who: str, sight: Sight = EVERYTHING) -> DrainResult:
        """Let all entries of a level, or of `all` levels, continue now."""
        levels = self._server.runtime.levels
        number = int(level) if level.isdecimal() and len(level) < 10 else 0
        if level != ALL and number not in levels.counts():
            known = ", ".join(map(str, sorted(levels.counts())))
            raise NotFound(f"there is no level {level!r}; there are {known}, and {ALL}", level=level)
        return DrainResult(
            level=number, let_go=levels.drain(await self._entries(None if level == ALL else number, sight))
        )


def _level(levels: Levels, level: int, entries: Sequence[LevelEntry]) -> LevelView:
    return LevelView(
        level=level,
        wait_ms=levels.wait_ms(level),
        waiting=len(entries),
        express=sum(entry.mode == "express" for entry in entries),
        next_at=entries[0].due_at if entries else 0,
        jobs=[entry.job for entry in entries[:JOBS_SHOWN]],
    )
