"""What a person or a program can ask of a domain about its sites."""

from typing import Protocol

from mendflow.core.model.sites import Site, SiteView


class SiteOperations(Protocol):
    async def sites(self) -> list[SiteView]: ...
    async def site(self, name: str) -> SiteView: ...
    async def put_site(self, site: Site, *, who: str) -> SiteView:
        """A new site, or other settings of one that is there."""
        ...

    async def pause_site(self, name: str, *, who: str, reason: str = "") -> SiteView:
        """Submit no more pilots there, and take back those that have not begun."""
        ...

    async def resume_site(self, name: str, *, who: str) -> SiteView: ...
    async def remove_site(self, name: str, *, who: str, force: bool = False) -> SiteView:
        """It goes with its last pilot; with `force` these are ended."""
        ...
