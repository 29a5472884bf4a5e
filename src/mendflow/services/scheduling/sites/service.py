"""Operations on sites, and the monitor that looks after them."""

import secrets
from collections.abc import Awaitable, Callable

import msgspec

from mendflow.core.model.data import StorageElement
from mendflow.core.model.ids import Instant
from mendflow.core.model.sites import Site, SiteDocument, SiteView
from mendflow.core.scheduling import submissions
from mendflow.services.base.alerts import AlertStore
from mendflow.services.base.contracts import Clock
from mendflow.services.base.counters import LabeledCounter
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.sites.alerts import SiteAlerts
from mendflow.services.scheduling.sites.batch_systems import SiteBatchSystems
from mendflow.services.scheduling.sites.pilot_monitor import PilotMonitor
from mendflow.services.scheduling.sites.site_store import SiteStore
from mendflow.stores.contract import Store

FindElement = Callable[[str], Awaitable[StorageElement | None]]
"""The storage element with a name, if there is one."""


class SiteService:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        membership: OwnMembership,
        meta: PilotScheduler,
        alerts: AlertStore,
        batch_systems: SiteBatchSystems | None,
        elements: FindElement,
        look_ms: int,
        looks: LabeledCounter | None = None,
        chance: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        self._clock = clock
        self._batch_systems = batch_systems
        self._elements = elements
        self._alerts = SiteAlerts(alerts)
        self.site_store = SiteStore(store, ledger, clock, chance)
        self.monitor = PilotMonitor(
            store=self.site_store,
            clock=clock,
            membership=membership,
            meta=meta,
            alerts=self._alerts,
            batch_systems=batch_systems,
            look_ms=look_ms,
            looks=looks,
        )

    async def all(self) -> list[SiteView]:
        now = self._clock.now()
        return [self._view(known.document, now) for known in await self.site_store.all()]

    async def get(self, name: str) -> SiteView:
        return await self._view_with_warnings((await self.site_store.get(name)).document)

    async def put(self, site: Site, *, who: str) -> SiteView:
        return await self._view_with_warnings(await self.site_store.put(site, who=who))

    async def _view_with_warnings(self, document: SiteDocument) -> SiteView:
        """The site with warnings about what its settings name and does not exist. None of that is refused: it may be
        added later, or exist on another server."""
        site, warnings = document.site, []
        if (storage := site.pilots.storage) and await self._elements(storage) is None:
            warnings.append(
                f"there is no storage element {storage}: its pilots read from and write to others; add it with"
                f" `mendflow data storage add`, or name one that `mendflow data storage list` shows"
            )
        if self._batch_systems is not None:
            warnings += await self._batch_systems.lacks(site)
        return msgspec.structs.replace(self._view(document, self._clock.now()), warnings=warnings)

    async def pause(self, name: str, *, who: str, why: str) -> SiteView:
        return self._view(await self.site_store.pause(name, who=who, why=why), self._clock.now())

    async def resume(self, name: str) -> SiteView:
        document = await self.site_store.resume(name)
        await self._alerts.look(document, self._clock.now())
        return self._view(document, self._clock.now())

    async def remove(self, name: str, *, force: bool) -> SiteView:
        document = await self.site_store.remove(name, force=force)
        await self._alerts.look(document, self._clock.now())
        return self._view(document, self._clock.now())

    def _view(self, document: SiteDocument, now: Instant) -> SiteView:
        standing, nobody = self.monitor.site_pilots(document), self.monitor.why_unmanaged(document)
        return SiteView(
            site=document.site,
            state="removed" if document.removed else "paused" if document.paused is not None else "active",
            inactive=standing.inactive,
            idle=standing.idle,
            busy=standing.busy,
            left_this_hour=submissions.left_this_hour(document, now),
            failures=document.failures,
            paused=document.paused,
            trouble=document.trouble,
            reasons=[nobody] if nobody else list(document.reasons),
            submissions=list(document.open.values()),
            endings=list(document.endings),
            made_at=document.made_at,
            made_by=document.made_by,
        )
