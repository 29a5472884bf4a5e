"""Pilots that get no new jobs, because somebody wants their machines empty.

What they run goes on. It is written down, so that it holds for all servers on the store, after a restart, and for a
pilot of the same name that comes back; until somebody undoes it."""

from typing import Final

import msgspec

from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import Instant, PilotId
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.readable_documents import readable_in
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Delete, Put, Store, WriteDone

DRAIN_KIND: Final = "pilot-drain"


class PilotDrain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pilot: PilotId
    by: str
    at: Instant
    reason: str = ""

    def sentence(self) -> str:
        return f"drained by {self.by}" + (f": {self.reason}" if self.reason else "")


_decode = msgspec.json.Decoder(PilotDrain).decode
_encode = msgspec.json.Encoder().encode


class DrainedPilots:
    def __init__(self, store: Store, clock: Clock, meta: PilotScheduler) -> None:
        self._store = store
        self._clock = clock
        self._meta = meta
        self._known: dict[PilotId, PilotDrain] = {}

    async def start(self) -> None:
        found = await readable_in(self._store.scan(DRAIN_KIND), _decode)
        self._known = {each.pilot: each for _, each in found}

    def sentence(self, pilot: PilotId) -> str:
        """Why the pilot gets no new jobs; empty if it does get some."""
        drain = self._known.get(pilot)
        return drain.sentence() if drain is not None else ""

    async def look(self, pilot: PilotId) -> None:
        """Another server may have been told of a pilot that is new here."""
        found = await self._store.get(DRAIN_KIND, pilot)
        if found is None:
            self._known.pop(pilot, None)
        else:
            self._known[pilot] = _decode(found.body)

    async def drain(self, pilot: PilotId, *, by: str, reason: str) -> None:
        drain = PilotDrain(pilot=pilot, by=by, at=self._clock.now(), reason=reason)
        await self._write(pilot, drain)
        self._known[pilot] = drain
        self._tell(pilot)

    async def resume(self, pilot: PilotId) -> None:
        await self._write(pilot, None)
        self._known.pop(pilot, None)
        self._tell(pilot)

    async def _write(self, pilot: PilotId, drain: PilotDrain | None) -> None:
        """All servers are told at once, and each writes it: who writes last has said the same."""
        for _ in range(TRIES):
            found = await self._store.get(DRAIN_KIND, pilot)
            version = found.version if found is not None else 0
            if drain is None and found is None:
                return
            write = Put(DRAIN_KIND, pilot, _encode(drain), version) if drain else Delete(DRAIN_KIND, pilot, version)
            [done] = await self._store.write([write])
            if isinstance(done, WriteDone):
                return
        raise Conflict(f"pilot {pilot} is drained or resumed by several at once, again and again; try again")

    def _tell(self, pilot: PilotId) -> None:
        """The pilot's request, if one is held, is looked at again."""
        if (record := self._meta.pilots.get(pilot)) is not None:
            record.drained = self.sentence(pilot)
            record.wake.set()
