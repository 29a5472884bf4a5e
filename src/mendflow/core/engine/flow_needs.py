"""What the jobs of a flow need that the flow does not bring along: the named limits and the secrets that they use."""

from collections.abc import Iterator

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


def limits_named(flow: Flow) -> dict[str, str]:
    """The named limits that jobs of a flow use, each with the first job that does."""
    found: dict[str, str] = {}
    for job in jobs_of(flow):
        for name, _ in job.limits.named:
            found.setdefault(name, job.name)
    return found


def secrets_named(flow: Flow) -> dict[str, str]:
    """The secrets that jobs of a flow use, each with the first job that does."""
    found: dict[str, str] = {}
    for job in jobs_of(flow):
        for use in job.secrets:
            found.setdefault(use.name, job.name)
    return found
