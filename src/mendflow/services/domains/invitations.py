"""Invitations of other domains: one document for each name, with the hash of its token, for a time and for one use."""

from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.domains.domain_names import domain_name_flaw
from mendflow.core.model.domains import DomainRights, InvitationAcceptance, InvitationSpec
from mendflow.core.model.errors import Conflict, Forbidden
from mendflow.core.model.ids import Instant
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.domains.own_domain import OwnDomain
from mendflow.services.domains.token_hashes import is_same_hash, sha256_of
from mendflow.stores.contract import Store

INVITATION_KIND: Final = "domain-invitation"
MINUTE_MS: Final = 60_000


class Invitation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A domain that is invited. `accepted_sha256` is the hash of the token in the acceptance: no other is taken."""

    name: str
    token_sha256: str
    rights: DomainRights = DomainRights()
    urls: tuple[str, ...] = ()
    made_at: Instant = 0
    made_by: str = ""
    expires_at: Instant = 0
    accepted_sha256: str = ""


_decode = msgspec.json.Decoder(Invitation).decode


class Invitations:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, own: OwnDomain) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._own = own

    async def all_open(self) -> list[Invitation]:
        """By their names. Those that are over are removed."""
        open, now = list[Invitation](), self._clock.now()
        async for each in self._store.scan(INVITATION_KIND):
            invitation = _decode(each.body)
            if invitation.expires_at > now:
                open.append(invitation)
            else:
                await self._ledger.put_now(INVITATION_KIND, each.id, None, each.version)
        return sorted(open, key=lambda each: each.name)

    async def make(self, name: str, spec: InvitationSpec, *, token_sha256: str, who: str) -> Invitation:
        """An earlier invitation of the same name no longer holds."""
        now = self._clock.now()
        invitation = Invitation(
            name=name,
            token_sha256=token_sha256,
            rights=spec.rights,
            urls=spec.urls,
            made_at=now,
            made_by=who,
            expires_at=now + spec.minutes * MINUTE_MS,
        )
        for _ in range(TRIES):
            before = await self._store.get(INVITATION_KIND, name)
            version = before.version if before is not None else 0
            if await self._ledger.put_now(INVITATION_KIND, name, invitation, version) is not None:
                return invitation
        raise Conflict(f"the domain {name} is being invited by several at once; try again")

    async def withdraw(self, name: str) -> bool:
        """Whether there was an invitation of this name; it no longer holds."""
        for _ in range(TRIES):
            found = await self._store.get(INVITATION_KIND, name)
            if found is None:
                return False
            if await self._ledger.put_now(INVITATION_KIND, name, None, found.version) is not None:
                return True
        raise Conflict(f"the invitation of {name} is being changed by several at once; try again")

    async def use(self, shown: str, acceptance: InvitationAcceptance) -> Invitation:
        """The invitation that was shown, used by this acceptance and by no other."""
        name, by = acceptance.domain, sha256_of(acceptance.token)
        for _ in range(TRIES):
            found = await self._store.get(INVITATION_KIND, name) if not domain_name_flaw(name) else None
            invitation = _decode(found.body) if found is not None else None
            if (
                found is None
                or invitation is None
                or not is_same_hash(invitation.token_sha256, sha256_of(shown))
                or invitation.expires_at <= self._clock.now()
                or invitation.accepted_sha256 not in ("", by)
            ):
                raise Forbidden(
                    f"the domain {self._own.name} has no such open invitation for a domain called {name[:100]!r}: it"
                    " was used, withdrawn, or is over, or is for another name. Ask its administrator for another"
                    " (mendflow domains invite NAME)"
                )
            used = replace(invitation, accepted_sha256=by)
            if await self._ledger.put_now(INVITATION_KIND, name, used, found.version) is not None:
                return used
        raise Conflict("this invitation is being accepted by several at once; try again")
