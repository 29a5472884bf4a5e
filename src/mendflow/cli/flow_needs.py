"""What a flow needs of where it is run, and whether it is there: named limits and secrets that somebody must have
set."""

from typing import Final

from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.engine.flow_needs import limits_named, secrets_named
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.core.model.named_limits import LimitCount

JOBS_NAMED_MAX: Final = 20


def limits_given(words: list[str]) -> dict[str, int]:
    """The values of `--limit NAME=COUNT`."""
    found = {}
    for word in words:
        name, _, count = word.partition("=")
        if not name or not count.isdigit():
            raise InvalidRequest(f"--limit {word!r:.100} is not understood; write --limit NAME=COUNT")
        found[name] = int(count)
    return found


async def set_limits(client: Client, given: dict[str, int], project: str = "") -> None:
    for name, count in given.items():
        await client.set_limit(name, LimitCount(count), project=project)


async def limits_not_set(client: Client, flow: Flow) -> dict[str, list[str]]:
    """The limits that the flow's jobs use and nobody has set, each with the jobs that use it."""
    named = limits_named(flow)
    if not named:
        return {}
    known = {view.name for view in await client.limits() if view.count is not None}
    return {name: jobs for name, jobs in named.items() if name not in known}


async def secrets_missing(client: Client, flow: Flow) -> dict[str, list[str]]:
    """The secrets that the flow's jobs use and that are not there, each with the jobs that use it."""
    named = secrets_named(flow)
    if not named:
        return {}
    known = {view.name for view in await client.secrets()}
    return {name: jobs for name, jobs in named.items() if name not in known}


def _jobs_use(jobs: list[str]) -> str:
    """All of them, as who has to do something about it may have to look at each."""
    if len(jobs) == 1:
        return f"job {jobs[0]} uses"
    shown = jobs[:JOBS_NAMED_MAX]
    last = f"{len(jobs) - JOBS_NAMED_MAX:,} more" if len(jobs) > JOBS_NAMED_MAX else shown.pop()
    return f"jobs {', '.join(shown)} and {last} use"


async def needs_told(client: Client, flow: Flow, *, by_option: bool = True) -> list[str]:
    """A sentence for each secret and each limit that the flow's jobs use and nobody has set. `by_option`: the command
    has `--limit`."""
    secrets, limits = await secrets_missing(client, flow), await limits_not_set(client, flow)
    told = [
        f"{_jobs_use(jobs)} the secret {name}, which is not there: mendflow secrets set {name} asks for its value"
        for name, jobs in secrets.items()
    ]
    for name, jobs in limits.items():
        option = f"--limit {name}=COUNT sets it, or " if by_option else ""
        told.append(
            f"{_jobs_use(jobs)} the limit {name}, which nobody has set here: {option}mendflow limits set {name} COUNT"
        )
    return told


async def demand_needs(client: Client, flow: Flow, *, by_option: bool = True) -> None:
    """Refuse to run here what would wait for ever, or fail."""
    if missing := await needs_told(client, flow, by_option=by_option):
        raise InvalidRequest("; ".join(missing))


async def warn_of_needs(client: Client, flow: Flow) -> None:
    """At a server, an administrator may set it at any time."""
    for name, jobs in (await secrets_missing(client, flow)).items():
        say(
            f"{_jobs_use(jobs)} the secret {name}, which is not there, and will fail without it: an administrator sets"
            f" it with mendflow secrets set {name}",
            err=True,
        )
    for name, jobs in (await limits_not_set(client, flow)).items():
        waits = "it waits" if len(jobs) == 1 else "they wait"
        say(
            f"{_jobs_use(jobs)} the limit {name}, which nobody has set: {waits} until an administrator does, with"
            f" mendflow limits set {name} COUNT",
            err=True,
        )
