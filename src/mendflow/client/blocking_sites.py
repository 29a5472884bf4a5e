"""What is asked about sites, for programs that wait."""

from mendflow.client.waiting import Waiting
from mendflow.core.model.sites import Site, SiteView


class BlockingSites(Waiting):
    def sites(self) -> list[SiteView]:
        return self._wait(self._client.sites())

    def site(self, name: str) -> SiteView:
        return self._wait(self._client.site(name))

    def put_site(self, site: Site) -> SiteView:
        return self._wait(self._client.put_site(site))

    def pause_site(self, name: str, *, reason: str = "") -> SiteView:
        return self._wait(self._client.pause_site(name, reason=reason))

    def resume_site(self, name: str) -> SiteView:
        return self._wait(self._client.resume_site(name))

    def remove_site(self, name: str, *, force: bool = False) -> SiteView:
        return self._wait(self._client.remove_site(name, force=force))
