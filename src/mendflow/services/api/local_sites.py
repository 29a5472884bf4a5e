"""The part of the local domain that is about sites."""

from mendflow.core.model.sites import Site, SiteView
from mendflow.services.api.local_views import LocalViews


class LocalSites(LocalViews):
    async def sites(self) -> list[SiteView]:
        return await self._server.runtime.sites.all()

    async def site(self, name: str) -> SiteView:
        return await self._server.runtime.sites.get(name)

    async def put_site(self, site: Site, *, who: str) -> SiteView:
        return await self._server.runtime.sites.put(site, who=who)

    async def pause_site(self, name: str, *, who: str, reason: str = "") -> SiteView:
        return await self._server.runtime.sites.pause(name, who=who, why=reason)

    async def resume_site(self, name: str, *, who: str) -> SiteView:
        return await self._server.runtime.sites.resume(name)

    async def remove_site(self, name: str, *, who: str, force: bool = False) -> SiteView:
        return await self._server.runtime.sites.remove(name, force=force)
