"""The begin of a case, under a name that nobody has.

A new case is begun by whoever made the document of its home; that is created once, so of several who begin the same
case one does. A key gives the same names on whichever server: so it starts one case, however many servers are asked at
once, and wherever the line broke."""

import hashlib
from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.problems import Conflict, NotNow
from mendflow.services.case_book import CASE_KIND, CaseDocument
from mendflow.services.house import House

BEGINNING: Final = "beginning"
BEGINNING_MS: Final = 5_000
"""So long is waited for another server that begins the same case."""
_LOOK_EVERY_MS = 50
_decode = msgspec.json.Decoder(CaseDocument).decode


class Beginning:
    """`chance` gives so many random bytes, in hexadecimal."""

    def __init__(self, house: House, chance: Callable[[int], str]) -> None:
        self._house = house
        self._chance = chance

    async def begin(self, wanted: CaseDocument, flow: Flow) -> CaseDocument:
        """Begin a case like this, which has no id yet; if there is one under its key, that is it."""
        for turn in count():
            wanted.id = CaseId(f"{flow.name}-{_drawn(wanted, turn) if wanted.key else self._chance(3)}")
            found = await self._claim(wanted.id)
            if found is None:
                return await self._begin(wanted, flow)
            if wanted.key and found.key == wanted.key:
                return same(found, wanted)
        raise AssertionError("there is always one more name")

    async def _claim(self, id: CaseId) -> CaseDocument | None:
        """Take the name of a new case; if it is taken, the case that has it."""
        homes, clock = self._house.services.homes, self._house.clock
        give_up_at = clock.now() + BEGINNING_MS
        if (found := await self._found(id)) is not None:
            return found
        while not await homes.claim(id, BEGINNING):
            if (found := await self._found(id)) is not None:
                return found
            if clock.now() >= give_up_at:
                raise NotNow(f"case {id} is just being started by another server; ask again in a moment")
            await clock.sleep(_LOOK_EVERY_MS)
        if (found := await self._found(id)) is not None:  # it was begun, and ended, a moment ago
            homes.let_go(id, BEGINNING)
        return found

    async def _found(self, id: CaseId) -> CaseDocument | None:
        services = self._house.services
        live = services.manager.live.get(id)
        if live is not None:
            return live.document
        found = await self._house.store.get(CASE_KIND, id)
        return _decode(found.body) if found is not None else None

    async def _begin(self, wanted: CaseDocument, flow: Flow) -> CaseDocument:
        services = self._house.services
        try:
            earlier = await services.manager.jobs_of(wanted.rerun_of) if wanted.rerun_of else {}
            return (await services.manager.begin(wanted, flow, earlier)).document
        finally:
            services.homes.let_go(wanted.id, BEGINNING)


def same(found: CaseDocument, wanted: CaseDocument) -> CaseDocument:
    """The case that was started under this key before, if it is what is wanted now."""
    if found.flow != wanted.flow or found.inputs != wanted.inputs:
        raise Conflict(f"the key {found.key!r} was used for case {found.id}, of other flow or inputs; take another")
    return found


def again(earlier: CaseDocument, who: str) -> CaseDocument:
    """A case like an earlier one."""
    return CaseDocument(
        id=CaseId(""),
        flow=earlier.flow,
        digest=earlier.digest,
        inputs=earlier.inputs,
        owner=who,
        rerun_of=earlier.id,
    )


def _drawn(wanted: CaseDocument, turn: int) -> str:
    """As good as drawn by chance, and for the same key the same."""
    return hashlib.sha256(f"{wanted.flow}\0{wanted.key}\0{turn}".encode()).hexdigest()[:6]
