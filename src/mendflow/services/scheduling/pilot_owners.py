"""Whose the names of pilots are: the token that a pilot first used has its name as long as the pilot is known.

A server knows its pilots in memory only. So that after a restart nobody else answers for a pilot that has no job, its
owner is written down when it first comes, and forgotten when it leaves or is lost. A name that nobody has used for long
is free: its pilot may have ended while no server ran."""

from typing import Final

import msgspec

from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import Instant, PilotId
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import readable_in
from mendflow.stores.contract import Delete, Put, Store, WriteDone

OWNER_KIND: Final = "pilot-owner"
KEPT_MS: Final = 90 * 86_400_000


class PilotOwner(msgspec.Struct, frozen=True, kw_only=True):
    """`at` is when the pilot last came to a server that did not know it."""

    pilot: PilotId
    owner: str
    at: Instant


_decode = msgspec.json.Decoder(PilotOwner).decode
_encode = msgspec.json.Encoder().encode


class PilotOwners:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._background = BackgroundTasks(ledger)
        self._versions: dict[PilotId, int] = {}  # of what was written here

    async def start(self) -> None:
        """Forget those that nobody has used for long."""
        found = await readable_in(self._store.scan(OWNER_KIND), _decode)
        old = [each for each, owner in found if self._is_old(owner)]
        for each in old:
            await self._store.write([Delete(OWNER_KIND, each.id, each.version)])

    async def stop(self) -> None:
        await self._background.stop()

    async def claim(self, pilot: PilotId, who: str) -> str:
        """Who has the name: this token, unless it is another's."""
        for _ in range(TRIES):
            found = await self._store.get(OWNER_KIND, pilot)
            known = _decode(found.body) if found is not None else None
            if known is not None and known.owner != who and not self._is_old(known):
                return known.owner
            version = found.version if found is not None else 0
            made = PilotOwner(pilot=pilot, owner=who, at=self._clock.now())
            [done] = await self._store.write([Put(OWNER_KIND, pilot, _encode(made), version)])
            if isinstance(done, WriteDone):
                self._versions[pilot] = done.version
                return who
        raise Conflict(f"pilot {pilot} comes to several servers at once, again and again; ask again")

    def release(self, pilot: PilotId) -> None:
        """The pilot has left, or is lost. It may have come to another server meanwhile, which has noted it anew."""
        version = self._versions.pop(pilot, None)
        if version is not None:
            self._background.start(self._remove(pilot, version))

    async def _remove(self, pilot: PilotId, version: int) -> None:
        if pilot not in self._versions:
            await self._store.write([Delete(OWNER_KIND, pilot, version)])

    def _is_old(self, known: PilotOwner) -> bool:
        return known.at + KEPT_MS < self._clock.now()
