"""Proposals as documents. A proposal keeps its id for as long as it is about the same: so one that was dismissed, or
adopted, is found again and not made a second time."""

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.learning import LearningSettings, Proposal, ProposalKind, ProposalState
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.readable_documents import readable_by_id
from mendflow.stores.contract import Put, Store, WriteDone

PROPOSAL_KIND: Final = "proposal"
SETTINGS_KIND: Final = "learning"
SETTINGS_ID: Final = "settings"
ID_CHARS: Final = 8
CLOSED_STATES: Final = frozenset({"dismissed", "retired"})
GROWN_TIMES: Final = 2
GROWN_BY: Final = 5
"""By how much failures of a cause must have become more before what was dismissed, or retired, is proposed again."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Proposal).decode
_decode_settings = msgspec.json.Decoder(LearningSettings).decode


class ProposalPlace(NamedTuple):
    """The id of a proposal, and the one for the same that is closed and that it comes after."""

    id: str
    after: Proposal | None


def proposal_place(
    known: Mapping[str, Proposal], kind: ProposalKind, subject: str, exlet: str, failures: int
) -> ProposalPlace:
    """The same for the same, as long as it is not in force: what is still missing then is another proposal. Another one
    comes also after one that was dismissed, or whose rule was retired, if failures have become clearly more by now."""
    number = 1
    after: Proposal | None = None
    while True:
        id = hashlib.sha256(f"{kind} {subject} {exlet} {number}".encode()).hexdigest()[:ID_CHARS]
        before = known.get(id)
        if before is None or before.state not in ("in-force", *CLOSED_STATES):
            return ProposalPlace(id, after)
        if before.state in CLOSED_STATES and not has_grown(before, failures):
            return ProposalPlace(id, after)
        after = before if before.state in CLOSED_STATES else after
        number += 1


def has_grown(closed: Proposal, failures: int) -> bool:
    """Whether there are so many more failures than when it was closed that it should be looked at again."""
    then = closed.closed_failures or closed.evidence.failures
    return failures >= max(GROWN_TIMES * then, then + GROWN_BY)


class ProposalStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> dict[str, Proposal]:
        return await readable_by_id(self._store.scan(PROPOSAL_KIND), _decode)

    async def find(self, name: str) -> Proposal:
        """The proposal whose id begins with this text."""
        found = [_decode(each.body) async for each in self._store.scan(PROPOSAL_KIND, name)] if name else []
        if not found:
            raise NotFound(f"there is no proposal {name!r:.80}; `mendflow proposals --all` lists them", proposal=name)
        if len(found) > 1:
            ids = ", ".join(each.id for each in found)
            raise NotFound(f"several proposals begin with {name!r}: {ids}; give more", proposal=name)
        return found[0]

    async def put(self, proposal: Proposal, *, states: tuple[ProposalState, ...], now: Instant) -> bool:
        """Write a proposal, if it is new or in one of these states. Whether it was written."""
        for _ in range(TRIES):
            found = await self._store.get(PROPOSAL_KIND, proposal.id)
            if found is not None and _decode(found.body).state not in states:
                return False
            body = _encode(msgspec.structs.replace(proposal, changed_at=now))
            version = found.version if found is not None else 0
            [result] = await self._store.write([Put(PROPOSAL_KIND, proposal.id, body, version)])
            if isinstance(result, WriteDone):
                return True
        raise Conflict(f"proposal {proposal.id} is changed by several at once, again and again; try it once more")

    async def settings(self) -> LearningSettings:
        found = await self._store.get(SETTINGS_KIND, SETTINGS_ID)
        return _decode_settings(found.body) if found is not None else LearningSettings()

    async def put_settings(self, settings: LearningSettings) -> None:
        """The last write wins."""
        for _ in range(TRIES):
            found = await self._store.get(SETTINGS_KIND, SETTINGS_ID)
            version = found.version if found is not None else 0
            [result] = await self._store.write([Put(SETTINGS_KIND, SETTINGS_ID, _encode(settings), version)])
            if isinstance(result, WriteDone):
                return
        raise Conflict("the settings are changed by several at once, again and again; put them once more")
