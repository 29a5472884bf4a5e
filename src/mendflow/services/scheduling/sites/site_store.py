"""The documents of sites. Every change is a function of the document, written at the version that was read: a server
that is slower reads again, and decides again."""

from collections.abc import Callable

import msgspec

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.sites import Site, SiteDocument, site_flaw
from mendflow.core.scheduling import submissions
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import readable_in
from mendflow.stores.contract import Store

SITE_KIND = "site"
SITES_MAX = 1_000
TRIES_MAX = 50
KEY_BYTES = 32

Change = Callable[[SiteDocument], SiteDocument | None]
"""The new document; None deletes it."""

_decode = msgspec.json.Decoder(SiteDocument).decode


class KnownSite(msgspec.Struct, frozen=True):
    document: SiteDocument
    version: int


class SiteStore:
    """`chance` gives so many random bytes, in hexadecimal."""

    def __init__(self, store: Store, ledger: Ledger, clock: Clock, chance: Callable[[int], str]) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._chance = chance

    async def all(self) -> list[KnownSite]:
        found = await readable_in(self._store.scan(SITE_KIND), _decode)
        return [KnownSite(site, each.version) for each, site in found]

    async def find(self, name: str) -> KnownSite | None:
        found = await self._store.get(SITE_KIND, name)
        return KnownSite(_decode(found.body), found.version) if found is not None else None

    async def get(self, name: str) -> KnownSite:
        found = await self.find(name)
        if found is None:
            raise NotFound(f"there is no site {name!r}; `mendflow admin sites` lists them")
        return found

    async def write(self, known: KnownSite, document: SiteDocument | None) -> KnownSite | None:
        """Write it if nobody else has since it was read; None if somebody has, or if it was deleted."""
        if document == known.document:
            return known
        version = await self._ledger.put_now(SITE_KIND, known.document.site.name, document, known.version)
        return KnownSite(document, version) if version and document is not None else None

    async def change(self, name: str, change: Change) -> SiteDocument | None:
        """Change a document, however often others do so meanwhile; None if there is none, before or after."""
        for _ in range(TRIES_MAX):
            known = await self.find(name)
            if known is None:
                return None
            document = change(known.document)
            written = await self.write(known, document)
            if written is not None:
                return written.document
            if document is None and await self.find(name) is None:
                return None
        raise Conflict(f"the site {name} is being changed by too many at a time; try again")

    async def put(self, site: Site, *, who: str) -> SiteDocument:
        """Add a site, or change the settings of one: pilots that run there continue."""
        if wrong := site_flaw(site):
            raise InvalidRequest(wrong, field="site")
        found = await self.change(site.name, lambda known: with_settings(known, site))
        if found is not None:
            return found
        if len(await self.all()) >= SITES_MAX:
            raise InvalidRequest(f"there are {SITES_MAX} sites already; remove some")
        document = SiteDocument(site=site, made_at=self._clock.now(), made_by=who, mark=self._chance(3))
        if await self._ledger.put_now(SITE_KIND, site.name, document, 0) is None:
            raise Conflict(f"somebody else has added the site {site.name} just now; look at it, and try again")
        return document

    def new_key(self) -> str:
        """Something that nobody can guess, for the secrets of a site's pilots."""
        return self._chance(KEY_BYTES)

    async def pause(self, name: str, *, who: str, why: str) -> SiteDocument:
        reason, now = why or f"by {who}", self._clock.now()
        return self._demand_found(
            name, await self.change(name, lambda it: submissions.pause(it, reason, now=now, by=who))
        )

    async def resume(self, name: str) -> SiteDocument:
        return self._demand_found(name, await self.change(name, _resume))

    async def remove(self, name: str, *, force: bool) -> SiteDocument:
        """The site is removed when its last pilot has ended; with `force` the pilots are cancelled."""
        await self.get(name)
        last = None

        def removed(known: SiteDocument) -> SiteDocument | None:
            nonlocal last
            last = msgspec.structs.replace(known, removed=True, emptied=force or known.emptied)
            return last if known.open else None

        await self.change(name, removed)
        return self._demand_found(name, last)

    def _demand_found(self, name: str, document: SiteDocument | None) -> SiteDocument:
        if document is None:
            raise NotFound(f"there is no site {name!r}; `mendflow admin sites` lists them")
        return document


def _resume(known: SiteDocument) -> SiteDocument:
    if known.removed:
        raise Conflict(
            f"the site {known.site.name} is being removed; `mendflow admin sites add FILE` with its settings keeps it"
        )
    return submissions.resume(known)


def with_settings(known: SiteDocument, site: Site) -> SiteDocument:
    return msgspec.structs.replace(known, site=site, removed=False, emptied=False, offered=())
