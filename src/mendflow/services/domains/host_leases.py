"""The leases of a host on the work of other domains: one for each server of an origin that claims work here.

A lease is counted from a stamp, which is a reading of our own meter that the origin has returned. So it begins before
the origin granted it, whatever has delayed the messages. It is stored now and then: a server that is started anew on
the same machine reads until when it may go on. Another server on the store, whose meter is another, counts what was
left from when it last looked, which was before that was written."""

from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.core.model.domains import LEASE_MS_MAX
from mendflow.services.base.ledger import Ledger
from mendflow.services.domains.work_documents import LEASE_KIND, LeaseDocument
from mendflow.stores.contract import Store

SLACK_MS: Final = 500
"""How much earlier than it must a host stops what it has no lease for."""

_decode = msgspec.json.Decoder(LeaseDocument).decode


class HostLeases:
    """`meter_now` is the meter called `meter`. Work is stopped `guard_ms` before its lease ends: pilots that cannot be
    reached stop what they have by then."""

    def __init__(
        self, store: Store, ledger: Ledger, *, meter: str, meter_now: Callable[[], int], guard_ms: int
    ) -> None:
        self._store = store
        self._ledger = ledger
        self.meter = meter
        self.now = meter_now
        self.guard_ms = guard_ms
        self._until: dict[tuple[str, str], int] = {}
        self._stored: dict[tuple[str, str], LeaseDocument] = {}
        self._versions: dict[str, int] = {}
        self._read_at: dict[tuple[str, str], int] = {}  # when those were read that others have stored
        self._looked_at: int | None = None

    def end_of(self, stamp: int, meter: str, lease_ms: int) -> int:
        """When a lease ends that is granted with this stamp; 0 if the stamp is not of our meter."""
        return min(stamp, self.now()) + min(lease_ms, LEASE_MS_MAX) if stamp and meter == self.meter else 0

    def covers(self, until: int) -> bool:
        """Whether work may be done, or begun, under a lease until then."""
        return until - self.guard_ms > self.now()

    @property
    def are_some(self) -> bool:
        """Whether anybody has ever granted one, as far as is known."""
        return bool(self._stored)

    def until(self, origin: str, sender: str) -> int:
        return self._until.get((origin, sender), 0)

    def stop_at(self, origin: str, sender: str) -> int:
        """When the work that this server of the origin claims must be stopped."""
        return self.until(origin, sender) - self.guard_ms

    async def extend(self, origin: str, sender: str, until: int, lease_ms: int) -> None:
        of = (origin, sender)
        if until <= self._until.get(of, 0):
            return
        self._until[of] = until
        stored = self._stored.get(of)
        if stored is not None and stored.meter == self.meter and until - stored.until_ms < lease_ms // 8:
            return
        left_ms = max(0, until - self.now())
        document = LeaseDocument(origin=origin, sender=sender, meter=self.meter, until_ms=until, left_ms=left_ms)
        self._stored[of] = document
        await self._write(f"{origin}/{sender}", document)

    async def _write(self, id: str, document: LeaseDocument) -> None:
        """Store it; another server may have stored a lease of the same sender in between."""
        version = await self._ledger.put_now(LEASE_KIND, id, document, self._versions.get(id, 0))
        if version is None:
            found = await self._store.get(LEASE_KIND, id)
            version = await self._ledger.put_now(LEASE_KIND, id, document, found.version if found is not None else 0)
        if version is not None:
            self._versions[id] = version

    async def look(self) -> None:
        """Read the leases that are stored: those of an earlier process with the same meter hold as they are, those that
        another server has stored since our last look hold from that look on."""
        before, self._looked_at = self._looked_at, self.now()
        async for found in self._store.scan(LEASE_KIND):
            if self._versions.get(found.id) == found.version:
                continue
            document = _decode(found.body)
            of = (document.origin, document.sender)
            self._versions[found.id], self._stored[of] = found.version, document
            self._read_at[of] = self._looked_at
            if document.meter == self.meter:
                self._until[of] = max(self._until.get(of, 0), document.until_ms)
            elif before is not None:
                self._until[of] = max(self._until.get(of, 0), before + document.left_ms)

    async def forget(self, origin: str) -> None:
        """The domain is no longer connected: all leases of it are over."""
        for of in [of for of in {*self._until, *self._stored} if of[0] == origin]:
            self._until.pop(of, None)
            self._stored.pop(of, None)
            self._read_at.pop(of, None)
        async for found in self._store.scan(LEASE_KIND, f"{origin}/"):
            await self._ledger.put_now(LEASE_KIND, found.id, None, found.version)
            self._versions.pop(found.id, None)

    async def purge(self, keep: Callable[[str, str], bool]) -> None:
        """Remove the leases that ended, and that no work hangs on. Those by another meter than ours, of another server
        or of one that is no more, end when what was left of them has passed since we first read them."""
        for of, document in list(self._stored.items()):
            until = self._until.get(of, 0)
            if document.meter != self.meter:
                until = max(until, self._read_at.get(of, self.now()) + document.left_ms)
            if until < self.now() and not keep(*of):
                await self.drop(*of)

    async def drop(self, origin: str, sender: str) -> None:
        """Remove a lease, unless another server has stored it anew."""
        of, id = (origin, sender), f"{origin}/{sender}"
        if id in self._versions:
            await self._ledger.put_now(LEASE_KIND, id, None, self._versions[id])
        self._stored.pop(of, None)
        self._until.pop(of, None)
        self._read_at.pop(of, None)
        self._versions.pop(id, None)
