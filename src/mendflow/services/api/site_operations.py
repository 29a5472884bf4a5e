"""The part of the domain that is about sites."""

from mendflow.core.model.sites import Site, SiteView
from mendflow.services.api.view_operations import ViewOperations


class SiteOperations(ViewOperations):
    async def sites(self) -> list[SiteView]:
        return await self._server.runtime.sites.all()

    async def site(self, name: str) -> SiteView:
        return await self._server.runtime.sites.get(name)

    async def put_site(self, site: Site, *, who: str) -> SiteView:
        """A new site, or other settings of one that is there."""
        return await self._server.runtime.sites.put(site, who=who)

    async def pause_site(self, name: str, *, who: str, reason: str = "") -> SiteView:
        """Submit no more pilots there, and take back those that have not begun."""
        return await self._server.runtime.sites.pause(name, who=who, why=reason)

    async def resume_site(self, name: str, *, who: str) -> SiteView:
        return await self._server.runtime.sites.resume(name)

    async def remove_site(self, name: str, *, who: str, force: bool = False) -> SiteView:
        """It goes with its last pilot; with `force` these are ended."""
        return await self._server.runtime.sites.remove(name, force=force)
