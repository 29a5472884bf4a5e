"""Which domains a flow names: for its jobs, and for the flows that it calls."""

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.domains import ANY_DOMAIN
from mendflow.core.model.flow import Call, Flow, JobActivity


def domains_named(flow: Flow) -> dict[str, str]:
    """The names of domains, each with the first step that names it. A called flow that comes along and stays here
    counts too; of one that goes to another domain that domain judges."""
    found: dict[str, str] = {}
    pending: list[Flow] = [flow]
    seen: set[str] = {flow.name}
    while pending:
        current = pending.pop()
        inner: dict[str, Flow] = {each.name: each for each in current.calls}
        for activity in walk_activities(current):
            if not isinstance(activity, JobActivity | Call):
                continue
            if activity.domain and activity.domain != ANY_DOMAIN:
                found.setdefault(activity.domain, activity.name)
            elif isinstance(activity, Call) and activity.flow in inner and activity.flow not in seen:
                seen.add(activity.flow)
                pending.append(inner[activity.flow])
    return found
