"""The operations of a domain on sites."""

from typing import Protocol

from mendflow.core.model.sites import Site, SiteView


class SiteOperations(Protocol):
    async def sites(self) -> list[SiteView]: ...
    async def site(self, name: str) -> SiteView: ...
    async def put_site(self, site: Site, *, who: str) -> SiteView:
        """Add a site, or change the settings of one."""
        ...

    async def pause_site(self, name: str, *, who: str, reason: str = "") -> SiteView:
        """Submit no more pilots there, and cancel those that have not begun."""
        ...

    async def resume_site(self, name: str, *, who: str) -> SiteView: ...
    async def remove_site(self, name: str, *, who: str, force: bool = False) -> SiteView:
        """The site is removed when its last pilot has ended; with `force` the pilots are cancelled."""
        ...
