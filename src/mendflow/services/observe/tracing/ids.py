"""The ids of traces and spans, derived from the names of their subjects."""

import hashlib
from functools import lru_cache

from mendflow.core.model.ids import CaseId, JobId
from mendflow.services.base.cluster import first_case_of


@lru_cache(maxsize=1024)
def trace_of(story: CaseId) -> bytes:
    """One trace for a case with all that it calls, and all that mends it."""
    return hashlib.sha256(f"mendflow trace {story}".encode()).digest()[:16]


def trace_of_case(case: str) -> bytes:
    return trace_of(first_case_of(case))


def case_span(case: CaseId) -> bytes:
    return _span(f"case {case}")


def item_span(case: CaseId, serial: int) -> bytes:
    return _span(f"item {case}/{serial}")


def attempt_span(job: JobId, fence: int) -> bytes:
    return _span(f"attempt {job} {fence}")


def part_span(job: JobId, fence: int, part: str) -> bytes:
    return _span(f"attempt {job} {fence} {part}")


def repair_span(decision: str) -> bytes:
    return _span(f"repair {decision}")


def traceparent(case: CaseId, job: JobId, fence: int) -> str:
    """The environment variable of a job that makes its own spans children of the attempt's span."""
    return f"00-{trace_of_case(case).hex()}-{attempt_span(job, fence).hex()}-01"


def _span(name: str) -> bytes:
    return hashlib.sha256(f"mendflow span {name}".encode()).digest()[:8]
