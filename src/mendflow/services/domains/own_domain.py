"""What this domain is called, and what it charges: one document that all servers on the store share.

A domain that nobody has named is called like the machine of its first server that is asked. That name is kept from the
moment on when another domain gets to know it: a second server on another machine must not speak under another."""

from typing import Final

import msgspec

from mendflow.core.domains.domain_names import domain_name_flaw, domain_name_from
from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store

OWN_KIND: Final = "domain-own"
_ID: Final = "own"


class OwnDomainDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str = ""
    charge: float = 0.0


_decode = msgspec.json.Decoder(OwnDomainDocument).decode


class OwnDomain:
    """`given` is the name that the server's owner has given; `host` is its machine."""

    def __init__(self, store: Store, ledger: Ledger, *, given: str, host: str) -> None:
        if given and (flaw := domain_name_flaw(given)):
            raise InvalidRequest(flaw, field="domain")
        self._store = store
        self._ledger = ledger
        self._given = given
        self._host = host
        self._document = OwnDomainDocument()
        self._is_named = not given

    @property
    def name(self) -> str:
        return self._document.name or self._given or domain_name_from(self._host)

    @property
    def charge(self) -> float:
        return self._document.charge

    async def start(self, *, is_known_to_others: bool) -> None:
        """Read it again. A name that is given takes the place of the old one when the server starts, unless other
        domains know that; of several servers on the store the last one names the domain."""
        self._document, _ = await self._read()
        known = self._document.name
        if self._is_named or known == self._given:
            self._is_named = True
            return
        if known and is_known_to_others:
            raise Conflict(
                f"this domain is called {known!r} by the domains that it is connected with, and cannot become"
                f" {self._given!r}: start it with --domain {known}, or disconnect them first (mendflow domains)"
            )
        await self._change(name=self._given)
        self._is_named = True

    async def keep_name(self) -> str:
        """The name, from now on whatever machine the server runs on."""
        name = self.name
        return name if self._document.name else (await self._change(name=name)).name

    async def set_charge(self, charge: float) -> None:
        if not 0 <= charge < 1e9:
            raise InvalidRequest(f"{charge} is no charge: give 0 or more, for an hour of a CPU", field="charge")
        await self._change(charge=charge)

    async def _read(self) -> tuple[OwnDomainDocument, int]:
        found = await self._store.get(OWN_KIND, _ID)
        return (_decode(found.body), found.version) if found is not None else (OwnDomainDocument(), 0)

    async def _change(self, *, name: str = "", charge: float | None = None) -> OwnDomainDocument:
        for _ in range(TRIES):
            before, version = await self._read()
            after = OwnDomainDocument(name=name or before.name, charge=before.charge if charge is None else charge)
            if after == before or await self._ledger.put_now(OWN_KIND, _ID, after, version) is not None:
                self._document = after
                return after
        raise Conflict("the settings of this domain are changed by several at once; try again")
