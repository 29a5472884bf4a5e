"""What the jobs of a flow need that the flow does not bring along: the named limits and the secrets that they use."""

from collections.abc import Iterable, Iterator

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Flow, JobActivity


def jobs_of(flow: Flow) -> Iterator[JobActivity]:
    """The jobs of a flow and of the flows that come along with it."""
    pending, seen = [flow], {flow.name}
    while pending:
        current = pending.pop()
        yield from (each for each in walk_activities(current) if isinstance(each, JobActivity))
        for inner in current.calls:
            if inner.name not in seen:
                seen.add(inner.name)
                pending.append(inner)


def limits_named(flow: Flow) -> dict[str, list[str]]:
    """The named limits that jobs of a flow use, each with the names of these jobs."""
    return _users((name, job.name) for job in jobs_of(flow) for name, _ in job.limits.named)


def secrets_named(flow: Flow) -> dict[str, list[str]]:
    """The secrets that jobs of a flow use, each with the names of these jobs."""
    return _users((use.name, job.name) for job in jobs_of(flow) for use in job.secrets)


def _users(uses: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for name, job in uses:
        found.setdefault(name, {})[job] = None
    return {name: [*reversed(jobs)] for name, jobs in found.items()}  # a flow is walked from its end
