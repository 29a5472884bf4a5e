"""The cases that work of other domains runs as: made from what was sent, and read again when they are over."""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.engine.plan import walk_activities
from mendflow.core.expressions import is_template
from mendflow.core.model.domains import DomainRights, SentWork, TriesThere
from mendflow.core.model.errors import BadFlow, Forbidden, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import NO_FOLDER, Call, Flow, Invoke, JobActivity, PrimitiveStep
from mendflow.core.model.ids import CaseId, FlowName, item_name
from mendflow.core.model.jobs import Job, JobSpec, Outcome, Resources, Submission
from mendflow.core.model.secrets import SecretUse
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.recovery.ids import generation_of
from mendflow.lazy import lazy_pattern
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.cases.called_cases import outcome_of
from mendflow.services.cases.flows import Flows, check_names
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.domains.work_documents import HostedDocument
from mendflow.stores.contract import Store

STOPPED_THERE: Final = "stoppedThere"
"""The fault of work that its host has stopped without its origin's asking: it may be sent there again."""

_UNFIT: Final = lazy_pattern(r"[^A-Za-z0-9_-]+")
_decode_flow = msgspec.json.Decoder(Flow).decode
_decode_job = msgspec.json.Decoder(Job).decode


def single_name(work: SentWork) -> str:
    """The name of the flow that a single job is run as: that of its item, as far as a flow can be called so."""
    name = _UNFIT.sub("-", work.name).strip("-")[:60]
    return name if name[:1].isalpha() else f"job-{name}".strip("-")


async def flow_of_work(work: SentWork, rights: DomainRights, flows: Flows) -> Flow:
    """The flow to run for a piece of work. Refused with a reason, if the origin has no right to it."""
    if work.job is not None:
        demand_own_flows(rights)
        return flow_of_job(work, work.job, rights)
    if not bytes(work.flow):
        if not may_start(work.name, rights.flows):
            raise Forbidden(f"the flow {work.name!r:.100} may not be started by your domain; ask for the right to it")
        if (deployed := flows.deployed(work.name)) is None:
            raise NotFound(f"there is no flow {work.name!r:.100} here")
        return deployed.flow
    demand_own_flows(rights)
    try:
        flow = _decode_flow(work.flow)
    except msgspec.MsgspecError as error:
        raise BadFlow(f"the flow that was sent cannot be read here: {error}") from error
    check_names(flow)
    await flows.compiler.check(flow)
    demand_confined(flow, rights, frozenset())
    return confined(flow, rights)


def may_start(name: str, flows: Collection[str]) -> bool:
    return "*" in flows or name in flows


def demand_confined(flow: Flow, rights: DomainRights, known: frozenset[str]) -> None:
    """Refuse a flow that was sent if it, or one that came with it, would start what its origin has no right to. `known`
    are the flows that came with those which call it."""
    known |= {each.name for each in flow.calls}
    if flow.exlet:
        raise BadFlow("an exlet mends cases of its own domain, and cannot be sent to another")
    for activity in walk_activities(flow):
        at = f"{flow.name}: {activity.name}"
        if isinstance(activity, JobActivity):
            demand_no_secrets(at, activity.secrets, activity.given)
        if isinstance(activity, PrimitiveStep):
            raise BadFlow("an exlet mends cases of its own domain, and cannot be sent to another")
        if isinstance(activity, Invoke) and "*" not in rights.flows:
            raise Forbidden(
                f"{at} calls a partner, which could start any flow here; only a domain that may start all flows may"
                " send that"
            )
        if isinstance(activity, Call) and not activity.flow and "*" not in rights.flows:
            raise Forbidden(
                f"{at} leaves it to the rules which flow is called, and so to ours, which could choose any; only a"
                " domain that may start all flows may send that"
            )
        if isinstance(activity, Call) and activity.flow not in known and not may_start(activity.flow, rights.flows):
            raise Forbidden(
                f"{at} calls the flow {activity.flow!r:.100}, which was not sent along, and which your domain may not"
                " start here; ask for the right to it"
            )
        if rights.sites and isinstance(activity, (Call, JobActivity)) and _domain_of(activity):
            raise Forbidden(
                f"{at} is for the domain {_domain_of(activity)!r:.100}, but your domain gets pilots of"
                f" {', '.join(rights.sites)} only: what it sends here stays here"
            )
    for each in flow.calls:
        demand_confined(each, rights, known)


def _domain_of(activity: Call | JobActivity) -> str:
    given = activity.given if isinstance(activity, JobActivity) else None
    return given.domain if given is not None else activity.domain


def demand_own_flows(rights: DomainRights) -> None:
    if not rights.own_flows:
        raise Forbidden("your domain may start flows of this one by their names, and send none of its own")


def demand_no_secrets(at: str, secrets: Sequence[SecretUse], given: JobSpec | None) -> None:
    """The secrets of this domain are for its own flows: a job that was sent could send them home."""
    if secrets or (given is not None and given.secrets):
        raise Forbidden(f"{at} uses secrets, which are not given to work of other domains; let it run in its own")


def flow_of_job(work: SentWork, spec: JobSpec, rights: DomainRights) -> Flow:
    name = item_name(spec.item)
    demand_no_secrets(name, spec.secrets, None)
    site = allowed_site(spec.resources.site, rights.sites)
    spec = replace(spec, submission=Submission.NOTIFY, resources=replace(spec.resources, site=site), domain="")
    return Flow(name=FlowName(single_name(work)), folder=NO_FOLDER, body=JobActivity(name=name, given=spec))


def allowed_site(wanted: str, sites: Sequence[str]) -> str:
    if not sites or wanted in sites:
        return wanted
    if wanted:
        raise Forbidden(f"your domain gets no pilots of the site {wanted!r:.100}; it has {', '.join(sites)}")
    return sites[0]


def confined(flow: Flow, rights: DomainRights) -> Flow:
    """The flow without a folder of this machine, and with the sites that its origin may use. A site that an expression
    gives is looked at when the job is submitted."""
    calls = tuple(confined(each, rights) for each in flow.calls)
    flow = replace(flow, folder=NO_FOLDER, calls=calls, triggers=None)
    return _with_sites(flow, rights) if rights.sites else flow


def _with_sites(part: Any, rights: DomainRights) -> Any:
    if isinstance(part, ResourceTemplates):
        if is_template(part.site):
            return part
        return replace(part, site=allowed_site(part.site if isinstance(part.site, str) else "", rights.sites))
    if isinstance(part, Resources):
        return replace(part, site=allowed_site(part.site, rights.sites))
    if type(part) in (list, tuple):
        return type(part)(_with_sites(each, rights) for each in part)
    if not isinstance(part, msgspec.Struct):
        return part
    changed = {name: _with_sites(getattr(part, name), rights) for name in part.__struct_fields__}
    return replace(part, **changed)


async def newest_job(store: Store, case: CaseId) -> Job | None:
    """The last submission of the only job of a case."""
    jobs = [_decode_job(found.body) async for found in store.scan(JOB_KIND, f"{case}/")]
    return max(jobs, key=lambda job: generation_of(job.id), default=None)


def tries_of(job: Job) -> TriesThere:
    """The attempts of a job for its origin: what is kept of them here, logs and folders, stays here."""
    attempts = tuple(replace(each, token="", serial=0, log=None, folder="") for each in job.history)
    return TriesThere(fence=job.fence, unbegun=job.unbegun, failures=job.failures, losses=job.losses, attempts=attempts)


def work_outcome(document: HostedDocument, case: CaseDocument, job: Job | None) -> Outcome:
    """How a piece of work ended, as its origin is told."""
    if case.status == "cancelled" and document.stopped:
        return stopped_outcome(document.stopped)
    if not document.single:
        return outcome_of(case)
    made = job.outcome if job is not None else None
    if case.status == "completed":
        return made if made is not None and made.ok else Outcome()
    ended = outcome_of(case)
    if made is not None and ended.fault is not None and made.fault is not None and made.fault.name == ended.fault.name:
        return made
    return ended


def stopped_outcome(why: str) -> Outcome:
    return Outcome(fault=Fault(name=STOPPED_THERE, category=Category.RESOURCE, message=f"it was stopped there: {why}"))
