"""What belongs to an ended case: its items, the cases it called, and the jobs it left behind.

A job with `submit: forget` may outlive its case. A command that runs the case also ends the pilot, so it waits for
those jobs before it prints anything."""

import asyncio

import msgspec

from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.engine.partial_results import partial_in_case, tolerated_items
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job, JobState, Submission
from mendflow.core.model.repair_views import DecisionQuery, DecisionView, HistoryEntry
from mendflow.core.model.views import CaseView, ItemView, JobQuery
from mendflow.core.recovery.undo_sentences import undoing_names, undone_in_flow, undone_sentences
from mendflow.pages.formatting import count_text
from mendflow.pages.item_counts import called_by_flow

PAGE_ITEMS = 20_000
"""Few, large pages: each makes the server look at all items."""

PAGE_CASES = 500
JOBS_SHOWN = 200
CALLED_CASES_READ = 50
DECISIONS_SHOWN = 1_000
LOOK_EVERY_S = 0.3


class CaseEnding(msgspec.Struct, frozen=True, kw_only=True):
    """`called` includes exlets that repaired the case. `called_items` are the items of the first of them; `decisions`
    are the first about the case, in order; `left` are jobs left behind that failed or have not ended."""

    case: CaseView
    items: list[ItemView]
    called: list[CaseView] = []
    called_items: list[ItemView] = []
    decisions: list[DecisionView] = []
    steps: dict[str, list[HistoryEntry]] = {}  # what the first exlets did, by case
    left: list[Job] = []
    undone: list[str] = []  # sentences
    partial: list[str] = []  # sentences about what worked on a part of what it needs
    tolerated: set[str] = set()  # failed items that the flow lets fail


async def collect_ending(client: Client, case: CaseView) -> CaseEnding:
    decisions = await client.decisions(DecisionQuery(case=case.id, limit=DECISIONS_SHOWN))
    called = await called_cases(client, case, mended=any(decision.exlet_case for decision in decisions))
    looked_into = called[:CALLED_CASES_READ]
    items = await all_items(client, case.id)
    flow = await client.flow_of(case.id)
    undoing = undoing_names(flow)
    return CaseEnding(
        case=case,
        items=items,
        undone=[*undone_sentences(decisions[::-1]), *undone_in_flow(undoing, items)],
        partial=[each.sentence for each in partial_in_case(flow, case, items)],
        tolerated=tolerated_items(flow, case, items),
        called=called,
        decisions=decisions[::-1],
        steps={str(each.id): await client.history(each.id) for each in looked_into if each.mends},
        called_items=[item for each in looked_into for item in await all_items(client, each.id)],
        left=[
            job
            for each in (case, *looked_into)
            for job in await _leftover_jobs(client, each, ("available", "running", "failed"))
        ],
    )


def own_calls(ending: CaseEnding) -> list[CaseView]:
    """The cases that the flow itself called, however deep; not the exlets, and not what these called."""
    return called_by_flow(ending.case, ending.called)


async def wait_for_leftovers(client: Client, case: CaseView, stop: asyncio.Event, *, quiet: bool) -> CaseView:
    """The case once the jobs that it left behind have ended, or once `stop` is set."""
    is_announced = False
    while left := await _unfinished(client, case):
        if not is_announced and not quiet:
            names = left[0] if len(left) == 1 else count_text(len(left), "job")
            say(
                f"The case has {case.status}; waiting for {names}, left behind by it. Press Ctrl-C to stop waiting.",
                err=True,
            )
        is_announced = True
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await stop.wait()
            break
        except TimeoutError:
            continue
    return await client.case(case.id) if is_announced else case


async def _unfinished(client: Client, case: CaseView) -> list[str]:
    """What it left behind that has not ended: its own jobs, and cases (the jobs of a BPEL process are cases)."""
    jobs = [str(job.spec.item) for job in await _leftover_jobs(client, case, ("available", "running"))]
    return jobs + [each.id for each in await called_cases(client, case) if each.status == "running"]


async def all_items(client: Client, case: str) -> list[ItemView]:
    """Every item of a case, page by page."""
    items: list[ItemView] = []
    while True:
        page = await client.items(case, limit=PAGE_ITEMS, after=items[-1].place if items else "")
        items += page
        if len(page) < PAGE_ITEMS:
            return items


async def called_cases(client: Client, case: CaseView, *, mended: bool = False) -> list[CaseView]:
    """The cases that this one called, the exlets that repaired it, and those that they called, oldest first."""
    if not mended and case.counts and not any(count.kind == "call" for count in case.counts):
        return []  # a case without counts may be a process, whose jobs are cases
    seen: list[CaseView] = []
    while True:
        page = await client.cases(limit=PAGE_CASES, offset=len(seen))
        seen += page
        if len(page) < PAGE_CASES or page[-1].started_at < case.started_at:
            break
    below: dict[CaseId, list[CaseView]] = {}
    for view in seen:
        for above in {view.parent, view.mends} - {None, view.id}:
            below.setdefault(CaseId(str(above)), []).append(view)
    family, pending = dict[CaseId, CaseView](), [case.id]
    while pending:  # by kinship alone: a case and one that it called can start in the same millisecond
        for view in below.get(pending.pop(), []):
            if view.id not in family and view.id != case.id:
                family[view.id] = view
                pending.append(view.id)
    return sorted(family.values(), key=lambda view: view.started_at)


async def _leftover_jobs(client: Client, case: CaseView, states: tuple[str, ...]) -> list[Job]:
    found = [await client.jobs(JobQuery(case=case.id, state=state, limit=JOBS_SHOWN)) for state in states]
    return [job for jobs in found for job in jobs if job.spec.submission is Submission.FORGET]


def leftover_text(job: Job) -> str:
    """ff failed: it ended with exit code 1."""
    if job.state is JobState.FAILED:
        fault = job.outcome.fault if job.outcome else None
        return f"{job.spec.item} failed" + (f": {fault.message}" if fault else "")
    return f"{job.spec.item} has not ended; it continues when a server runs on the data folder again"
