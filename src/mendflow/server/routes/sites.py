"""Sites: where pilots are submitted to, and how many there may be."""

from typing import Annotated

from litestar import Router, delete, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.sites import Site, SiteView
from mendflow.server.routes.cases import RequestBody
from mendflow.server.routes.parameters import TheCaller, TheDomain


class SitePause(RequestBody, frozen=True):
    """The reason, for those who look later."""

    reason: str = ""


@get("/sites", summary="Where pilots are submitted to")
async def sites(domain: TheDomain) -> list[SiteView]:
    return await domain.sites()


@get("/sites/{site:str}", summary="A site: its settings, its pilots, and why it has as many as it has")
async def site(domain: TheDomain, site: FromPath[str]) -> SiteView:
    return await domain.site(site)


@put("/sites/{site:str}", summary="Add a site, or give one other settings")
async def put_site(domain: TheDomain, caller: TheCaller, site: FromPath[str], data: JSONBody[Site]) -> SiteView:
    """Adds the site or changes its settings; pilots that run there continue. For administrators, because a site's
    settings are commands on other machines."""
    if data.name != site:
        raise InvalidRequest(f"the site is called {data.name!r} in the body and {site!r} in the path", field="name")
    return await domain.put_site(data, who=caller.name)


@post("/sites/{site:str}/pause", status_code=200, summary="Submit no more pilots to a site")
async def pause_site(
    domain: TheDomain, caller: TheCaller, site: FromPath[str], data: JSONBody[SitePause | None] = None
) -> SiteView:
    """Pilots that have not started are cancelled; those that run continue. For administrators."""
    return await domain.pause_site(site, who=caller.name, reason=(data or SitePause()).reason)


@post("/sites/{site:str}/resume", status_code=200, summary="Let a paused site have pilots again")
async def resume_site(domain: TheDomain, caller: TheCaller, site: FromPath[str]) -> SiteView:
    """For administrators."""
    return await domain.resume_site(site, who=caller.name)


@delete("/sites/{site:str}", status_code=200, summary="Remove a site")
async def remove_site(
    domain: TheDomain,
    caller: TheCaller,
    site: FromPath[str],
    force: Annotated[bool, QueryParameter(description="End its pilots, whatever they do.")] = False,
) -> SiteView:
    """The site is removed when its last pilot has ended. For administrators."""
    return await domain.remove_site(site, who=caller.name, force=force)


ROUTES = Router("/", route_handlers=[sites, site, put_site, pause_site, resume_site, remove_site], tags=["sites"])
