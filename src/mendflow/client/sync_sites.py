"""What is asked about sites, for programs that wait."""

from mendflow.client.sync_base import SyncBase
from mendflow.core.model.sites import Site, SiteView


class SyncSites(SyncBase):
    def sites(self) -> list[SiteView]:
        return self._run(self._client.sites())

    def site(self, name: str) -> SiteView:
        return self._run(self._client.site(name))

    def put_site(self, site: Site) -> SiteView:
        return self._run(self._client.put_site(site))

    def pause_site(self, name: str, *, reason: str = "") -> SiteView:
        return self._run(self._client.pause_site(name, reason=reason))

    def resume_site(self, name: str) -> SiteView:
        return self._run(self._client.resume_site(name))

    def remove_site(self, name: str, *, force: bool = False) -> SiteView:
        return self._run(self._client.remove_site(name, force=force))
