"""The way of a job, or of a call, through domains: where each submission went, and why."""

from typing import Final

import msgspec

from mendflow.core.domains.routing import RoutingDecision
from mendflow.core.model.errors import RequestError
from mendflow.core.model.jobs import Job
from mendflow.core.model.views import ItemView, Reason
from mendflow.core.recovery.ids import flow_job_id, generation_of, submission_job_id
from mendflow.services.base.contracts import SubmissionFailed
from mendflow.services.domains.router import DomainRouter, RouteDocument

ROWS_SHOWN: Final = 5


async def with_way(router: DomainRouter, job: Job, told: Reason) -> Reason:
    """What there is to say of a job, and which way it took. One that has said nothing of domains took none."""
    if not job.spec.domain and generation_of(job.id) == 1:
        return told
    known, last = flow_job_id(job.id), generation_of(job.id)
    way: list[str] = []
    newest: RouteDocument | None = None
    for generation in range(max(1, last - ROWS_SHOWN), last + 1):
        newest = await router.route_of(submission_job_id(known, generation))
        if newest is not None:
            number = f"submission {generation}" if last > 1 else "it"
            way.append(f"{number} {_went(newest.decision)}")
    if newest is not None:
        way += _not_chosen(newest.decision)
    told = msgspec.structs.replace(told, facts=[*way, *told.facts])
    if newest is None or not newest.decision.domain or job.finished:
        return told
    return await _while_away(router, job, newest.decision.domain, told, way)


async def _while_away(router: DomainRouter, job: Job, domain: str, told: Reason, way: list[str]) -> Reason:
    """Of a job in another domain our own pilots know nothing: that domain is asked."""
    try:
        status = await router.status(job.id)
        said, progress, stuck = status.reason, status.progress, status.stuck
    except (RequestError, SubmissionFailed) as error:
        said = f"nothing is known of it at this moment ({error})"
        progress, stuck = "", False
    sentence = f"{job.spec.shown} is in the domain {domain}: {said}."
    state = "suspended" if job.suspended else progress or told.state
    attempts = [fact for fact in told.facts if fact.startswith("attempt ")]
    return Reason(subject=told.subject, state=state, sentence=sentence, facts=[*way, *attempts], stuck=stuck)


async def call_with_way(router: DomainRouter, item: ItemView, told: Reason, progress: str = "") -> Reason:
    """The same of a call that says something of domains. `progress` is what the other domain says of it."""
    if item.kind != "call":
        return told
    route = await router.route_of(f"{item.case}.{item.serial}")
    if route is None:
        return told
    facts = [f"it {_went(route.decision)}", *_not_chosen(route.decision)]
    if progress and route.decision.domain:
        facts.insert(1, f"{route.decision.domain} says: {progress}")
    return msgspec.structs.replace(told, facts=[*facts, *told.facts])


def _went(decision: RoutingDecision) -> str:
    where = f"went to the domain {decision.domain}" if decision.domain else "stayed here"
    reason = decision.reason.removeprefix(f"{decision.domain}: ") if decision.domain else decision.reason
    return f"{where}: {reason}"


def _not_chosen(decision: RoutingDecision) -> list[str]:
    others = [row for row in decision.rows[1:] if row.reason]
    if decision.rows and not decision.rows[0].fits:
        others = list(decision.rows)
    return [f"not {row.domain}: {row.reason}" for row in others[:ROWS_SHOWN]]
