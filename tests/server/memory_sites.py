"""Sites of the domain in memory: it has none."""

from mendflow.core.model.problems import NotFound
from mendflow.core.model.sites import Site, SiteView


class MemorySites:
    async def sites(self) -> list[SiteView]:
        return []

    async def site(self, name: str) -> SiteView:
        raise NotFound(f"there is no site {name!r}")

    async def put_site(self, site: Site, *, who: str) -> SiteView:
        return SiteView(site=site, state="active", inactive=0, idle=0, busy=0, left_this_hour=1, made_by=who)

    async def pause_site(self, name: str, *, who: str, reason: str = "") -> SiteView:
        return await self.site(name)

    async def resume_site(self, name: str, *, who: str) -> SiteView:
        return await self.site(name)

    async def remove_site(self, name: str, *, who: str, force: bool = False) -> SiteView:
        return await self.site(name)
