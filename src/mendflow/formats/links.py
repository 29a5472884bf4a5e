"""Dependencies of jobs as links: `needs` joins with all of them; `after` waits for a link but ignores its state."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, LinkSource, Parallel
from mendflow.lazy import lazy_pattern

ALWAYS: Final = lazy_pattern(r"\balways\s*\(\s*\)")
FAILURES: Final = lazy_pattern(r"\b(?:failed|skipped)\s*\(\s*jobs\s*\.\s*`?([\w-]+)`?\s*\)")


class JobNeeds(msgspec.Struct, frozen=True):
    """A job, the jobs that must have completed before it, and those that must only have ended."""

    activity: Activity
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def link_name(first: str, then: str) -> str:
    return f"{first}->{then}"


def parallel_with_links(name: str, jobs: Mapping[str, JobNeeds], on_fault: Literal["stop", "finish"]) -> Parallel:
    """All jobs in parallel, as far as they need not wait for each other."""
    sources: dict[str, list[LinkSource]] = {each: [] for each in jobs}
    for then, job in jobs.items():
        for first in (*job.needs, *job.after):
            sources[first].append(LinkSource(link=link_name(first, then)))
    branches = tuple(with_links(then, job, sources[then]) for then, job in jobs.items())
    links = tuple(source.link for each in sources.values() for source in each)
    return Parallel(name=name, branches=branches, links=links, on_fault=on_fault)


def with_links(name: str, job: JobNeeds, sources: Iterable[LinkSource]) -> Activity:
    targets = tuple(link_name(first, name) for first in (*job.needs, *job.after))
    return msgspec.structs.replace(job.activity, targets=targets, sources=tuple(sources), join=join_of(name, job))


def join_of(name: str, job: JobNeeds) -> Literal["any", "all"] | Expr:
    if not job.after:
        return "all" if job.needs else "any"
    return Expr(" && ".join(f"links['{link_name(first, name)}']" for first in job.needs) or "true")


def runs_without(activity: Activity, need: str) -> bool:
    """Whether the activity's condition is about how this need ended."""
    if activity.when is None:
        return False
    asked = FAILURES.findall(activity.when.text)
    return ALWAYS.search(activity.when.text) is not None or need in asked
