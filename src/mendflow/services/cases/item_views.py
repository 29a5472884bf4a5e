"""Views of items, made from the documents of jobs, user tasks and the rest."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from mendflow.core.engine.activities.items import files_of
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import JobId, item_name
from mendflow.core.model.jobs import Attempt, Job, Measurements
from mendflow.core.model.views import AttemptView, ItemState, ItemView, RunView
from mendflow.core.results.reuse_checks import why_not_kept
from mendflow.services.cases.live_case import CaseDocument, ItemDocument, state_of
from mendflow.services.cases.user_tasks import TaskDocument, outcome_of

_TASK_STATES: dict[str, ItemState] = {
    "offered": "waiting",
    "claimed": "running",
    "completed": "completed",
    "rejected": "failed",
    "expired": "failed",
    "withdrawn": "cancelled",
}
_TASK_WAITS = {
    "offered": "it waits for somebody with the role {task.role}",
    "claimed": "{task.claimed_by} has claimed it",
}
_MEASURE_FIELDS = tuple(
    (set(AttemptView.__struct_fields__) & set(Measurements.__struct_fields__)) - {"started_at", "ended_at"}
)
_measured = attrgetter(*_MEASURE_FIELDS)


def generation_of(id: str) -> tuple[str, int]:
    """The id that the flow uses for a job, and the number of this submission: `night-7f3k/12~2` is the second."""
    known, _, number = id.partition("~")
    return known, int(number) if number.isdecimal() else 1


def of_jobs(jobs: Sequence[Job], log_tail: str = "", *, awaited: bool = False, runs: bool = True) -> ItemView:
    """One item made of all submissions of its job, the oldest first. While the flow still waits for it, it has not
    failed, whatever the last submission came to: it is being mended."""
    last = of_job(jobs[-1], log_tail, runs=runs)
    changes: dict[str, Any] = {
        "job": JobId(generation_of(jobs[0].id)[0]),
        "created_at": jobs[0].created_at,
        "cache_reason": last.cache_reason or jobs[0].cache_reason,  # of a job that was mended only the first looked
    }
    if len(jobs) > 1:
        changes["attempts"] = [_attempt_view(attempt.shown, attempt) for attempt in numbered_attempts(jobs)]
    if awaited and last.state == "failed":
        changes |= {"state": "waiting", "ended_at": 0, "reason": "it failed, and is being mended"}
    return msgspec.structs.replace(last, **changes)


def merged_submissions(submissions: Sequence[Job]) -> Job:
    """The last submission under the id that the flow uses, with the attempts of all, numbered through. Earlier results
    were looked for before the first."""
    last, counted = submissions[-1], numbered_attempts(submissions)
    grants, unbegun = (sum(job.fence for job in submissions), sum(job.unbegun for job in submissions))
    first = submissions[0]
    return msgspec.structs.replace(
        last, id=first.id, history=counted, fence=grants, unbegun=unbegun, cache_reason=first.cache_reason
    )


def numbered_attempts(submissions: Sequence[Job]) -> list[Attempt]:
    """The attempts of all submissions, each numbered after those of earlier ones."""
    counted: list[Attempt] = []
    grants = tries = 0
    for job in submissions:
        for each in job.history:
            counted.append(msgspec.structs.replace(each, fence=grants + each.fence, number=tries + each.shown))
        grants, tries = grants + job.fence, tries + job.tries
    return counted


def of_job(job: Job, log_tail: str = "", *, runs: bool = True) -> ItemView:
    outcome = job.outcome
    return ItemView(
        case=job.case,
        item=job.spec.item,
        name=item_name(job.spec.item),
        kind="job",
        serial=int(generation_of(job.id)[0].rpartition("/")[2]),
        state=state_of(job, runs=runs),
        job=job.id,
        pilot=job.pilot,
        attempts=[_attempt_view(attempt.shown, attempt) for attempt in job.history],
        created_at=job.created_at,
        ended_at=job.finished_at,
        fault=outcome.fault if outcome else _last_fault(job),
        outputs=outcome.outputs if outcome else None,
        files=files_of(outcome) if outcome else {},
        cache_reason=job.cache_reason,
        cached_from=outcome.cached_from if outcome else "",
        code_mismatch=why_not_kept(outcome) if outcome else "",
        left_running=outcome.left_running if outcome and not outcome.cached_from else "",
        command=_command(job),
        container=job.spec.container.image if job.spec.container is not None else "",
        image=outcome.image if outcome else "",
        log_tail=outcome.log_tail if outcome else log_tail,
        element=job.spec.element,
    )


def of_task(task: TaskDocument) -> ItemView:
    return ItemView(
        case=task.case,
        item=task.item,
        name=item_name(task.item),
        kind="user-task",
        serial=task.serial,
        state=_TASK_STATES[task.state],
        created_at=task.offered_at,
        ended_at=task.ended_at,
        fault=outcome_of(task).fault if task.state in ("rejected", "expired") else None,
        outputs=task.outputs,
        reason=task.comment if task.state == "withdrawn" else "",
        why=_TASK_WAITS.get(task.state, "").format(task=task),
        element=task.element,
    )


def with_earlier_runs(view: ItemView, earlier: Sequence[ItemView]) -> ItemView:
    """The last run of an item that was restarted, with those before it; the attempts of all are numbered through."""
    if not earlier:
        return view
    made: list[AttemptView] = []
    for run in (*earlier, view):
        before = _try_count(made)
        made += [msgspec.structs.replace(attempt, number=before + attempt.number) for attempt in run.attempts]
    return msgspec.structs.replace(
        view,
        attempts=made,
        created_at=earlier[0].created_at,
        earlier_runs=[_run_view(each) for each in earlier],
    )


def _try_count(attempts: Sequence[AttemptView]) -> int:
    """How many attempts these were: a grant that came back before it began has the number of the attempt after it."""
    return max((attempt.number for attempt in attempts), default=0)


def _run_view(view: ItemView) -> RunView:
    return RunView(
        serial=view.serial,
        state=view.state,
        job=view.job,
        attempts=_try_count(view.attempts),
        created_at=view.created_at,
        ended_at=view.ended_at,
        fault=view.fault,
        ran_ms=sum(attempt.ran_ms for attempt in view.attempts),
    )


def as_forced(view: ItemView, document: ItemDocument | None) -> ItemView:
    """The item as it counts after it was ended by force: its order was cancelled."""
    if document is None or document.serial != view.serial:
        return view
    return msgspec.structs.replace(
        view,
        state=document.state,
        ended_at=document.ended_at,
        outputs=document.outputs,
        fault=document.fault,
        reason=document.reason,
    )


def of_called(called: CaseDocument) -> ItemView:
    """The call that started a case; it is over when the case is."""
    assert called.parent is not None and called.parent_item is not None
    assert called.status != "running", f"{called.id} is not over"
    return ItemView(
        case=called.parent,
        item=called.parent_item,
        name=item_name(called.parent_item),
        kind="call",
        serial=called.parent_serial,
        state=called.status,
        created_at=called.started_at,
        ended_at=called.ended_at,
        fault=called.fault,
        outputs=called.outputs,
        reason=f"case {called.id}",
        element=called.parent_element,
    )


def of_document(item: ItemDocument) -> ItemView:
    return ItemView(
        case=item.case,
        item=item.item,
        name=item.name,
        kind=item.kind,
        serial=item.serial,
        state=item.state,
        created_at=item.created_at,
        ended_at=item.ended_at,
        fault=item.fault,
        outputs=item.outputs,
        reason=item.reason,
        element=item.element,
    )


def _attempt_view(number: int, attempt: Attempt) -> AttemptView:
    return AttemptView(
        number=number,
        pilot=attempt.pilot,
        granted_at=attempt.granted_at,
        started_at=attempt.measures.started_at,
        ended_at=attempt.measures.ended_at or attempt.ended_at,
        end=attempt.end,
        fault=attempt.fault,
        host=attempt.host,
        folder=attempt.folder,
        **dict(zip(_MEASURE_FIELDS, _measured(attempt.measures), strict=True)),
    )


def _last_fault(job: Job) -> Fault | None:
    return job.history[-1].fault if job.history else None


def _command(job: Job) -> str:
    if job.spec.function is not None:
        return f"{job.spec.function.module}:{job.spec.function.name}"
    return job.spec.command or ""
