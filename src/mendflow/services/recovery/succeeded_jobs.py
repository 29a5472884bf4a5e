"""Jobs that ended well, as contexts: what failures are compared with, so that what every job has tells nothing.

A context is made of what is stored of a job and of its case. It has the same paths as that of a failure, as far as that
is known afterwards: nothing of the history, or of what there was to run on. Only a few of the newest cases are looked
at, and of each only a few jobs."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId, item_name
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.principals import Sight
from mendflow.core.model.values import Value
from mendflow.core.recovery.redaction import redact
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.exception_facts import job_facts_of
from mendflow.services.cases.flows import FlowDocument
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.cases.live_inputs import defaults_of
from mendflow.services.recovery.failed_attempts import measures_of
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

PAGE: Final = 100
PAGES_MAX: Final = 20
"""So many pages of the newest cases are read, of whatever flows, until enough of these flows are found: by their flow,
a store would look through all."""
CASES_MAX: Final = 30
"""Of these flows, the newest."""
JOBS_MAX: Final = 10
"""Of a case, of the tasks that failed elsewhere, and of all others."""

_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode

Context = dict[str, Value]
NewestFlow = Callable[[str], FlowDocument | None]
"""The newest version of a flow, if it is known here."""


async def succeeded_contexts(
    store: Store,
    newest_flow: NewestFlow,
    flows: Sequence[str],
    tasks: Collection[str],
    failed: Collection[CaseId],
    sight: Sight,
) -> list[Context]:
    """Contexts of jobs of these flows that ended well, those of these tasks first. Jobs of a case that has `failed`
    tell only of themselves: what the case was given, and what its jobs left, may be why another job of it failed."""
    same: list[Context] = []
    others: list[Context] = []
    for case in await _newest_cases(store, flows, sight):
        data, jobs = _data(case, newest_flow), await _jobs(store, case, tasks)
        for job in jobs:
            told = _context(job, case, data, jobs, whole=case.id not in failed)
            (same if _name(job) in tasks else others).append(told)
    return [*same, *others]


async def _newest_cases(store: Store, flows: Sequence[str], sight: Sight) -> list[CaseDocument]:
    cases: list[CaseDocument] = []
    last: StoredDocument | None = None
    for _ in range(PAGES_MAX):
        page = await store.search(
            CASE_KIND, in_sight(sight), order_by="started_at", descending=True, limit=PAGE, after=last
        )
        cases += [case for found in page if (case := _decode_case(found.body)).flow in flows]
        if len(page) < PAGE or len(cases) >= CASES_MAX:
            break
        last = page[-1]
    return cases[:CASES_MAX]


async def _jobs(store: Store, case: CaseDocument, tasks: Collection[str]) -> list[Job]:
    ended = [FieldCondition("case", case.id), FieldCondition("state", JobState.COMPLETED.value)]
    found = await store.search(JOB_KIND, ended, limit=JOBS_MAX)
    if any(count.name in tasks and count.done for count in case.counts):  # else none of them has ended well here
        named = FieldCondition("name", sorted(tasks), "in")
        found += await store.search(JOB_KIND, [*ended, named], limit=JOBS_MAX)
    jobs = {each.id: _decode_job(each.body) for each in found}
    return [job for job in jobs.values() if job.outcome is not None and job.outcome.ok]


def _context(job: Job, case: CaseDocument, data: Context | None, jobs: Sequence[Job], *, whole: bool) -> Context:
    """As it was when the job ended; what it left itself is among what the jobs of the case left."""
    outcome = job.outcome
    assert outcome is not None
    last = job.history[-1] if job.history else None
    left = {_name(each): _left(each, whole=whole) for each in jobs if each.finished_at <= job.finished_at}
    about: Context = {
        **job_facts_of(job.spec),
        **measures_of(outcome),
        "exit_code": outcome.exit_code if outcome.exit_code is not None else 0,
        "signal": None,
        "stage": "",
        "log_tail": outcome.log_tail,
        "site": last.site if last is not None else "",
        "host": last.host if last is not None else "",
        "failures": job.failures,
        "losses": job.losses,
    }
    of_case: Context = {"flow": case.flow, "version": case.digest, "jobs": left}
    if whole and data is not None:
        of_case["data"] = data
    context: Context = {
        "case": of_case,
        "item": {"name": _name(job), "kind": "job"},
        "job": about,
        "outcome": {"ok": True, "exit_code": outcome.exit_code},
        "fault": {"name": "", "type": "", "category": "", "message": "", "exit_code": None, "signal": None},
    }
    plain: Context = msgspec.to_builtins(context)
    return redact(plain)


def _data(case: CaseDocument, newest_flow: NewestFlow) -> Context | None:
    """What the case worked on, with what its flow has for the inputs that it was not given, as failures have it. None
    where that is not known any more: what was given alone would make any default look like what only failures have."""
    defaults = case.defaults
    if defaults is None and (newest := newest_flow(case.flow)) is not None and newest.digest == case.digest:
        defaults = defaults_of(newest.flow, case.inputs)
    return {**defaults, **case.inputs} if defaults is not None else None


def _left(job: Job, *, whole: bool) -> Context:
    outcome = job.outcome
    assert outcome is not None
    return {"exit_code": outcome.exit_code, **({"outputs": outcome.outputs} if whole else {})}


def _name(job: Job) -> str:
    return job.name or item_name(job.spec.item)
