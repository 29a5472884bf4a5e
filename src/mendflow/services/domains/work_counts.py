"""How much work there is between this domain and another. Whoever keeps the works provides it."""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec


class WorkCount(msgspec.Struct, frozen=True):
    """Pieces of our work there, and of its work here, of all servers on the store. Those that have ended count until
    their outcomes were acknowledged."""

    sent: int = 0
    held: int = 0

    @property
    def none(self) -> bool:
        return not self.sent and not self.held


NO_WORK: Final = WorkCount()


class WorkCounter(Protocol):
    async def counts(self) -> Mapping[str, WorkCount]:
        """By domain; one that is missing has none."""
        ...
