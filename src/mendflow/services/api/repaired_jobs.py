"""Which results of a case were made by jobs that a repair had changed, and with what: whoever uses such a result, or is
asked about it, has to know that it was made otherwise than the flow says."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.repair_views import DecisionQuery, DecisionView
from mendflow.core.model.rules import rule_text
from mendflow.core.model.views import CaseView, ItemView
from mendflow.core.recovery.changed_jobs import changes_of
from mendflow.core.recovery.ids import flow_job_id
from mendflow.services.api.case_queries import CaseQueries
from mendflow.services.base.hidden_texts import HiddenTexts

LOOKED_AT: Final = 50
TOLD_MAX: Final = 5


class ShownValues(NamedTuple):
    """What may be told of values: secrets to nobody, and those of environments to whoever may start cases."""

    hidden: HiddenTexts
    shows_env: bool


class Repaired(NamedTuple):
    """A job that completed otherwise than its flow had it; `changes` are words, with secrets masked."""

    job: Job
    changes: str


async def find_repaired(domain: CaseQueries, shown: ShownValues, id: JobId) -> Repaired | None:
    """What a job had otherwise when it completed, if it was submitted again with changes."""
    try:
        first, last = await domain.job(flow_job_id(id)), await domain.newest_submission(flow_job_id(id))
    except NotFound:
        return None  # its case was pruned
    if last.state is not JobState.COMPLETED:
        return None
    mask = (await shown.hidden.current(first.spec.project)).mask
    changes = changes_of(first.spec, last.spec, mask=mask, shows_env=shown.shows_env)
    return Repaired(first, mask(", ".join(changes))) if changes else None


async def origin_sentence(domain: CaseQueries, shown: ShownValues, job: Job) -> str:
    """What is said of a result that was taken over, if the job that made it had been mended."""
    made_by = job.outcome.cached_from if job.outcome is not None else None
    if not made_by or (repaired := await find_repaired(domain, shown, JobId(made_by))) is None:
        return ""
    if repaired.job.spec.project != job.spec.project:
        return ""
    return (
        f"{job.spec.shown} was taken over from case {repaired.job.case}, where it was run again with {repaired.changes}"
    )


async def mended_facts(domain: CaseQueries, shown: ShownValues, case: CaseView) -> list[str]:
    """What repairs had changed of jobs whose results a case has, its own or those that it took over."""
    told, is_whole = [], True
    if any(count.mended for count in case.counts):
        decisions = await domain.decisions(DecisionQuery(case=case.id, state="done", limit=LOOKED_AT))
        told, is_whole = await _mended_here(domain, shown, decisions), len(decisions) < LOOKED_AT
    if any(count.cached for count in case.counts):
        items = await domain.items(case.id, state="cached", limit=LOOKED_AT)
        for item in items:
            told += await _taken_over(domain, shown, item)
        is_whole = is_whole and len(items) < LOOKED_AT
    more = len(told) - TOLD_MAX
    least = "" if is_whole else "at least "
    others = [f"mended: and {least}{more:,} more: `mendflow history {case.id}`"] if more > 0 else []
    return [*(f"mended: {each}" for each in told[:TOLD_MAX]), *others]


async def _mended_here(domain: CaseQueries, shown: ShownValues, decisions: Sequence[DecisionView]) -> list[str]:
    told = {}
    for each in decisions:
        if each.job is None or not each.exlet or each.shown in told:
            continue
        repaired = await find_repaired(domain, shown, each.job)
        if repaired is not None:
            told[each.shown] = f"{each.shown} was run again with {repaired.changes}{by_whom(each)}"
    return [told[name] for name in sorted(told)]


async def _taken_over(domain: CaseQueries, shown: ShownValues, item: ItemView) -> list[str]:
    if item.job is None:
        return []
    sentence = await origin_sentence(domain, shown, await domain.job(item.job))
    return [sentence] if sentence else []


def by_whom(decision: DecisionView) -> str:
    """The rule that had it done, or the person."""
    if decision.ordered_by:
        return f" by order of {decision.ordered_by}"
    return f" by {rule_text(decision.rules, decision.rule)}" if decision.rule is not None else ""
