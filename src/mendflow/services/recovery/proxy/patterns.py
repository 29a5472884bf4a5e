"""The repository of patterns of a server: those that are shipped, and those that were added."""

from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.recovery.patterns import FaultPattern, JobPattern, Patterns, check_pattern
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import demand_readable, readable_in
from mendflow.stores.contract import Store

PATTERN_KIND: Final = "pattern"


class StoredPattern(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A stored pattern, of a conversation or of a repair."""

    conversation: JobPattern | None = None
    repair: FaultPattern | None = None


_decode = msgspec.json.Decoder(StoredPattern).decode


class PatternStore:
    """`patterns` are those in force; `on_change` is called with every change, so what is added is in force at once."""

    def __init__(
        self, store: Store, ledger: Ledger, shipped: Patterns, on_change: Callable[[Patterns], None] | None = None
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._on_change = on_change
        self.patterns = shipped

    async def start(self) -> None:
        for _, stored in await readable_in(self._store.scan(PATTERN_KIND), _decode):
            self._merge(stored)

    async def add(self, pattern: JobPattern | FaultPattern) -> None:
        """Add a pattern, or replace the one with the same name."""
        if not pattern.name:
            raise InvalidRequest("a pattern needs a name", field="name")
        if isinstance(pattern, JobPattern):
            if problem := check_pattern(pattern.messages):
                raise InvalidRequest(problem, field="messages")
            stored = StoredPattern(conversation=pattern)
        else:
            stored = StoredPattern(repair=pattern)
        await self._put(pattern.name, stored)
        self._merge(stored)

    async def _put(self, name: str, stored: StoredPattern) -> None:
        """The last write wins."""
        for _ in range(TRIES):
            found = await self._store.get(PATTERN_KIND, name)
            demand_readable(found, _decode)
            if await self._ledger.put_now(PATTERN_KIND, name, stored, found.version if found else 0) is not None:
                return
        raise Conflict(f"pattern {name} is changed by several at once, again and again; add it once more")

    def _merge(self, stored: StoredPattern) -> None:
        conversations = (stored.conversation,) if stored.conversation is not None else ()
        repairs = (stored.repair,) if stored.repair is not None else ()
        self.patterns = self.patterns.with_more(Patterns(conversations, repairs))
        if self._on_change is not None:
            self._on_change(self.patterns)
