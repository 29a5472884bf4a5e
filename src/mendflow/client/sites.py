"""The client's calls about sites."""

from urllib.parse import quote

import msgspec

from mendflow.client.transport import Transport
from mendflow.core.model.sites import Site, SiteView


class SiteCalls:
    _transport: Transport

    async def sites(self) -> list[SiteView]:
        return await self._transport.ask("GET", "/sites", list[SiteView])

    async def site(self, name: str) -> SiteView:
        return await self._transport.ask("GET", _path(name), SiteView)

    async def put_site(self, site: Site) -> SiteView:
        """A new site, or other settings of one that is there: what runs there goes on."""
        return await self._transport.ask(
            "PUT", _path(site.name), SiteView, body=msgspec.to_builtins(site), repeatable=True
        )

    async def pause_site(self, name: str, *, reason: str = "") -> SiteView:
        return await self._transport.ask(
            "POST", f"{_path(name)}/pause", SiteView, body={"reason": reason}, repeatable=True
        )

    async def resume_site(self, name: str) -> SiteView:
        return await self._transport.ask("POST", f"{_path(name)}/resume", SiteView, repeatable=True)

    async def remove_site(self, name: str, *, force: bool = False) -> SiteView:
        """It goes with its last pilot; with `force` these are ended."""
        query: dict[str, str | int] = {"force": "true" if force else "false"}
        return await self._transport.ask("DELETE", _path(name), SiteView, query=query)


def _path(name: str) -> str:
    return f"/sites/{quote(name, safe='')}"
