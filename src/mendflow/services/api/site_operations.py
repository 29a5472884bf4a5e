"""The part of the domain that is about sites."""

from mendflow.core.model.sites import Site, SiteView
from mendflow.services.api.view_operations import ViewOperations


class SiteOperations(ViewOperations):
    async def sites(self) -> list[SiteView]:
        return await self._server.runtime.sites.all()

    async def site(self, name: str) -> SiteView:
        return await self._server.runtime.sites.get(name)

    async def put_site(self, site: Site, *, who: str) -> SiteView:
        """Add a site, or change the settings of one."""
        return await self._server.runtime.sites.put(site, who=who)

    async def pause_site(self, name: str, *, who: str, reason: str = "") -> SiteView:
        """Submit no more pilots there, and cancel those that have not begun."""
        return await self._server.runtime.sites.pause(name, who=who, why=reason)

    async def resume_site(self, name: str, *, who: str) -> SiteView:
        return await self._server.runtime.sites.resume(name)

    async def remove_site(self, name: str, *, who: str, force: bool = False) -> SiteView:
        """The site is removed when its last pilot has ended; with `force` the pilots are cancelled."""
        return await self._server.runtime.sites.remove(name, force=force)
