"""Jobs, the pilots that run them, and the servers. A job's id, `CASE/SERIAL`, is also its path."""

from typing import Annotated

from litestar import Response, Router, get
from litestar.params import PathParameter, QueryParameter

from mendflow.core.model.jobs import JobState
from mendflow.core.model.views import CountsView, JobQuery, JobView, LogView, PilotView, ServerView
from mendflow.server.routes.parameters import (
    After,
    CaseName,
    Condition,
    CountedBy,
    Limit,
    Offset,
    Order,
    Text,
    TheDomain,
    page,
)

JobSerial = Annotated[
    str,
    PathParameter(
        description="The number after the slash of the id; with `~2` and so on where the job was submitted again.",
    ),
]


@get("/jobs", summary="Jobs that match", tags=["jobs"])
async def jobs(
    domain: TheDomain,
    case: Text = "",
    job_state: Annotated[JobState | None, QueryParameter(name="state")] = None,
    name: Text = "",
    owner: Text = "",
    pilot: Text = "",
    attempts_min: Annotated[int, QueryParameter(ge=0, le=2**53)] = 0,
    limit: Limit = 100,
    offset: Offset = 0,
    where: Condition = "",
    order: Order = "",
    after: After = "",
) -> Response[list[JobView]]:
    """The newest first, unless another order is given. With a condition the page may be short, and `Mendflow-Next` says
    from where to continue."""
    wanted = JobQuery(
        case=case,
        state=job_state or "",
        name=name,
        owner=owner,
        pilot=pilot,
        attempts_min=attempts_min,
        limit=limit,
        offset=offset,
        where=where,
        order=order,
        after=after,
    )
    found = await domain.find_jobs(wanted)
    return page(found.rows, found.next)


@get("/jobs/count", summary="How many jobs match", tags=["jobs"])
async def count_jobs(
    domain: TheDomain,
    case: Text = "",
    job_state: Annotated[JobState | None, QueryParameter(name="state")] = None,
    name: Text = "",
    owner: Text = "",
    pilot: Text = "",
    attempts_min: Annotated[int, QueryParameter(ge=0, le=2**53)] = 0,
    where: Condition = "",
    by: CountedBy = "",
    after: After = "",
) -> CountsView:
    """The number of all jobs, under the empty name, or the numbers by the values of a field. If the answer has `next`,
    ask again from there and add the numbers."""
    wanted = JobQuery(
        case=case,
        state=job_state or "",
        name=name,
        owner=owner,
        pilot=pilot,
        attempts_min=attempts_min,
        where=where,
        after=after,
    )
    return await domain.count_jobs(wanted, by=by)


@get("/jobs/{case:str}/{serial:str}", summary="One job", tags=["jobs"])
async def job(domain: TheDomain, case: CaseName, serial: JobSerial) -> JobView:
    return await domain.job(f"{case}/{serial}")


@get("/jobs/{case:str}/{serial:str}/log", summary="A part of what an attempt printed", tags=["jobs"])
async def log(
    domain: TheDomain,
    case: CaseName,
    serial: JobSerial,
    attempt: Annotated[int, QueryParameter(ge=0, le=2**53)] = 0,
    offset: Annotated[int, QueryParameter(ge=0, le=2**53)] = 0,
) -> LogView:
    return await domain.log(f"{case}/{serial}", attempt=attempt, offset=offset)


@get("/pilots", summary="Pilots that are known", tags=["pilots"])
async def pilots(domain: TheDomain) -> list[PilotView]:
    return await domain.pilots()


@get("/servers", summary="Servers on the store", tags=["server"])
async def servers(domain: TheDomain) -> list[ServerView]:
    """The servers as this server sees them. `silent`: it has not renewed its document for a while; if that lasts, the
    others take over its cases."""
    return await domain.servers()


ROUTES = Router("/", route_handlers=[jobs, count_jobs, job, log, pilots, servers])
