"""Counts the whole past of a store: once for a store that has never been counted, and when somebody asks.

It reads every decision and every job, a few at a time, so that a server that serves others stays responsive, and adds
up in memory, where only causes, flows and days are kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.jobs import Job
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.repair import RETRYING
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.base.readable_documents import read_or_leave_out
from mendflow.services.learning.counting import FailureCounter
from mendflow.services.learning.learned_failures import decode_decided, learned_failure
from mendflow.services.recovery.decisions import DECISION_KIND, OPEN_STATES
from mendflow.stores.contract import Store

SLICE: Final = 200
JOBS_PER_READ: Final = 1_000

_decode_job = msgspec.json.Decoder(Job).decode


class _CaseFlow(msgspec.Struct):
    flow: str
    project: str = DEFAULT_PROJECT
    counted_as: str = ""


_decode_case = msgspec.json.Decoder(_CaseFlow).decode


class RecountResult(msgspec.Struct, frozen=True):
    decisions: int
    jobs: int


async def recount(
    store: Store,
    counter_of: Callable[[Callable[[Job], str]], FailureCounter],
    before: Instant,
    is_same_again: Callable[[str, str], bool],
    counted_name: Callable[[str, str], Awaitable[str]],
) -> tuple[FailureCounter, RecountResult]:
    """Count what ended before that moment."""
    flows: dict[CaseId, str] = {}
    counter = counter_of(lambda job: flows.get(job.case, ""))
    decisions = await _count_decisions(store, counter, before, is_same_again)
    jobs = 0
    waiting: list[Job] = []
    async for found in store.scan(JOB_KIND):
        job = _decode_job(found.body)
        if job.finished and job.finished_at < before:
            waiting.append(job)
        if len(waiting) >= JOBS_PER_READ:
            jobs += await _count_jobs(store, counter, waiting, flows, counted_name)
            waiting = []
    jobs += await _count_jobs(store, counter, waiting, flows, counted_name)
    return counter, RecountResult(decisions, jobs)


async def _count_decisions(
    store: Store, counter: FailureCounter, before: Instant, is_same_again: Callable[[str, str], bool]
) -> int:
    read = 0
    async for found in store.scan(DECISION_KIND):
        if (decision := read_or_leave_out(found, decode_decided)) is not None:
            is_open = decision.state in OPEN_STATES or decision.result == RETRYING
            failure = learned_failure(decision, is_same_again)
            if failure is not None and not is_open and failure.ended_at < before:
                counter.count_failure(failure)
        read += 1
        if read % SLICE == 0:
            await asyncio.sleep(0)
    return read


async def _count_jobs(
    store: Store,
    counter: FailureCounter,
    jobs: list[Job],
    flows: dict[CaseId, str],
    counted_name: Callable[[str, str], Awaitable[str]],
) -> int:
    cases = list({job.case for job in jobs} - flows.keys())
    if len(flows) > 10 * JOBS_PER_READ:
        flows.clear()
        cases = list({job.case for job in jobs})
    for found in await store.get_many(CASE_KIND, cases):
        case = _decode_case(found.body)
        flows[CaseId(found.id)] = case.counted_as or await counted_name(case.flow, case.project)
    for number, job in enumerate(jobs, 1):
        counter.count_jobs((job,))
        if number % SLICE == 0:
            await asyncio.sleep(0)
    return len(jobs)
