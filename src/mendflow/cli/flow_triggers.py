"""What commands say and do about the key `on` of flows."""

import os
from pathlib import Path

from mendflow.cli.connection import connect, has_server, run_async
from mendflow.cli.deployment import deploy
from mendflow.cli.flow_files import named_stores
from mendflow.cli.options import DATA_VARIABLE, SERVER_VARIABLE, ServerTarget
from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.data_sets import WatchView
from mendflow.core.model.errors import Forbidden, NotFound, Problem, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_triggers import EndNotice, FileArrival, FlowTriggers
from mendflow.core.model.views import FlowView
from mendflow.formats import YAML
from mendflow.formats.files import flow_text
from mendflow.formats.yaml.triggers import problem_at
from mendflow.pages.formatting import duration_text


async def deploy_with_options(client: Client, flow: Flow) -> FlowView:
    """Deploy a flow with its triggers. Where these are in effect already, or there are none before and after, whoever
    may deploy may do that."""
    try:
        before = (await client.flow(flow.name)).triggers
    except NotFound:
        before = None
    if before == flow.triggers:
        return await deploy(client, flow)
    try:
        return await deploy(client, flow, triggers=True)
    except Forbidden as error:
        word = "gets" if flow.triggers is not None else "loses"
        raise Forbidden(
            f"{error.message}; flow {flow.name} {word} triggers, and only an administrator may make and remove watches"
            " and webhooks: have one deploy it, or leave `on:` as it is on the server. Nothing was deployed"
        ) from None


def warn_of_triggers(flow: Flow, file: str) -> None:
    """What runs once does not wait for files."""
    if flow.triggers is not None:
        say(
            f"the `on:` of {flow.name} counts when it is deployed, at a server: mendflow serve, and then "
            f"mendflow flows deploy {file}; this runs it once",
            err=True,
        )


def trigger_lines(triggers: FlowTriggers) -> list[str]:
    """What happens by itself, one sentence each."""
    found = [_arrival_text(triggers.files)] if triggers.files is not None else []
    return found + [_notice_text(notice) for notice in triggers.notices]


def _arrival_text(files: FileArrival) -> str:
    stable = duration_text(files.stable_ms)
    return f"each file {files.match} in {files.where}, unchanged for {stable}, starts a case as input {files.input}"


def _notice_text(notice: EndNotice) -> str:
    return f"a case that ends as {' or '.join(notice.on)} is told to {', '.join(notice.notify)}"


def short_triggers(triggers: FlowTriggers | None) -> str:
    """For one cell of a table."""
    if triggers is None:
        return ""
    found = [f"{triggers.files.match} in {triggers.files.where}"] if triggers.files is not None else []
    return "; ".join(found + [f"tells {', '.join(notice.on)}" for notice in triggers.notices])


def watch_line(view: WatchView) -> str:
    problem = f"; {view.problem}" if view.problem else ""
    return f"{view.known} files taken, {view.unsettled} may still change, {view.left_out} left out{problem}"


def store_problems(path: str, flows: list[Flow]) -> tuple[list[Problem], list[str]]:
    """The storage elements that flows name and the server does not have; and what could not be asked, and so is seen
    when the flow is deployed."""
    named = named_stores(flows)
    known = _known_stores(
        ServerTarget(server=os.environ.get(SERVER_VARIABLE, ""), data=os.environ.get(DATA_VARIABLE, ""))
    )
    if known is None:
        names = ", ".join(sorted(named))
        return [], [f"{path}: no server could be asked whether there is a storage element {names}"]
    there = ", ".join(sorted(known)) or "none"
    return [
        _problem(
            path,
            f"there is no storage element `{name}` (known: {there}); add it with mendflow data storage add"
            f" --name {name} --url URL",
        )
        for name in sorted(named - known)
    ], []


def _problem(path: str, message: str) -> Problem:
    if path.endswith(YAML):
        return problem_at(flow_text(Path(path), path), path, ("on", "files", "in"), message)
    return Problem(file=path, message=message)


def _known_stores(target: ServerTarget) -> set[str] | None:
    """The names of the server's storage elements; None if there is no server, and no data folder, to be asked."""

    async def ask() -> set[str]:
        async with connect(target) as client:
            return {each.name for each in await client.elements()}

    if not has_server(target) and not target.has_store:
        return None
    try:
        return run_async(ask())
    except RequestError:
        return None
