"""Alerts, and requeueing a job that hangs."""

from typing import Annotated

from litestar import Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from mendflow.core.model.alerts import AlertView, Severity
from mendflow.core.model.views import JobView
from mendflow.server.routes.cases import RequestBody
from mendflow.server.routes.jobs import JobSerial
from mendflow.server.routes.parameters import CaseName, Limit, TheCaller, TheDomain


class JobRelease(RequestBody, frozen=True):
    """The reason, for those who look later."""

    reason: str = ""


@get("/alerts", summary="Alerts, the newest first", tags=["alerts"])
async def alerts(
    domain: TheDomain,
    severity: Annotated[Severity, QueryParameter(description="This severity or a higher one.")] = "warning",
    every: Annotated[bool, QueryParameter(name="all", description="Those that are over too.")] = False,
    limit: Limit = 100,
) -> list[AlertView]:
    return await domain.alerts(severity=severity, every=every, limit=limit)


@post("/acknowledged/{alert:path}", status_code=200, summary="Say that somebody has seen an alert", tags=["alerts"])
async def acknowledge(domain: TheDomain, caller: TheCaller, alert: FromPath[str]) -> AlertView:
    """An alert's id has slashes; percent-encode them. For administrators."""
    return await domain.acknowledge(alert.removeprefix("/"), who=caller.name)


@post(
    "/jobs/{case:str}/{serial:str}/requeue",
    status_code=200,
    summary="Take a job from its pilot, and let another try it",
    tags=["jobs"],
)
async def requeue(
    domain: TheDomain, caller: TheCaller, case: CaseName, serial: JobSerial, data: JSONBody[JobRelease | None] = None
) -> JobView:
    """The job is given to a pilot again when its attempt is certain to have ended, which may take as long as a lease.
    Reports of the attempt are refused from now on. For administrators."""
    return await domain.requeue(f"{case}/{serial}", who=caller.name, reason=(data or JobRelease()).reason)


ROUTES = Router("/", route_handlers=[alerts, acknowledge, requeue])
