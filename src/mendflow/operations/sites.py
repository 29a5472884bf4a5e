"""Sites: where pilots are submitted to, and how many there may be."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.sites import Site, SiteView
from mendflow.operations.arguments import Body
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, VIEWERS
from mendflow.operations.subjects import INSTALLATION

Force = Annotated[bool, Meta(description="End its pilots, whatever they do.")]


class SiteCalls(Calls, tag="sites"):
    @operation("GET", "/sites", VIEWERS, INSTALLATION)
    async def sites(self) -> list[SiteView]:
        """Where pilots are submitted to."""

    @operation("GET", "/sites/{name}", VIEWERS, INSTALLATION)
    async def site(self, name: str) -> SiteView:
        """A site: its settings, its pilots, and why it has as many as it has."""

    @operation("PUT", "/sites/{site.name}", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def put_site(self, site: Body[Site]) -> SiteView:
        """Add a site, or give one other settings. Pilots that run there continue. For administrators, because a site's
        settings are commands on other machines."""

    @operation("POST", "/sites/{name}/pause", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def pause_site(self, name: str, *, reason: str = "") -> SiteView:
        """Submit no more pilots to a site. Pilots that have not started are cancelled; those that run continue. The
        `reason` is for those who look later."""

    @operation("POST", "/sites/{name}/resume", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def resume_site(self, name: str) -> SiteView:
        """Let a paused site have pilots again."""

    @operation("DELETE", "/sites/{name}", ADMINISTRATORS, INSTALLATION)
    async def remove_site(self, name: str, *, force: Force = False) -> SiteView:
        """Remove a site. It goes when its last pilot has ended."""
