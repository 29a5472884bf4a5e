"""What commands say and do about the key `on` of flows."""

import os
import shlex
from pathlib import Path

from mendflow.cli.connection import connect, has_server, run_async
from mendflow.cli.deployment import deploy
from mendflow.cli.flow_arguments import named_stores
from mendflow.cli.flow_needs import needs_told
from mendflow.cli.mail_options import mail_of_environment
from mendflow.cli.options import DATA_VARIABLE, SERVER_VARIABLE, ServerTarget
from mendflow.cli.printing import say
from mendflow.cli.unfinished_cases import folder_option
from mendflow.client import Client
from mendflow.core.model.data_sets import WatchView
from mendflow.core.model.errors import Forbidden, NotFound, Problem, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_files import FlowSource
from mendflow.core.model.flow_triggers import EndNotice, FileArrival, FlowTriggers, ScheduleTrigger
from mendflow.core.model.views import CaseView, FlowView
from mendflow.core.schedules.spec_checks import when_text
from mendflow.core.schedules.trigger_spec import spec_of_trigger
from mendflow.formats import YAML
from mendflow.formats.files import flow_text
from mendflow.formats.yaml.triggers import problem_at
from mendflow.pages.formatting import duration_text


async def deploy_with_options(
    client: Client, flow: Flow, *, project: str = "", source: FlowSource | None = None
) -> FlowView:
    """Deploy a flow with its triggers. Where these are in effect already, or there are none before and after, whoever
    may deploy may do that."""
    try:
        before = (await client.flow(flow.name)).triggers
    except NotFound:
        before = None
    if before == flow.triggers:
        return await deploy(client, flow, project=project, source=source)
    try:
        return await deploy(client, flow, triggers=True, project=project, source=source)
    except Forbidden as error:
        word = "gets" if flow.triggers is not None else "loses"
        raise Forbidden(
            f"{error.message}; flow {flow.name} {word} triggers, and only an administrator may make and remove watches,"
            " schedules and webhooks: have one deploy it, or leave `on:` as it is on the server. Nothing was deployed"
        ) from None


def warn_of_triggers(flow: Flow, file: str, target: ServerTarget) -> None:
    """What runs once does not wait for files, nor for due times."""
    if flow.triggers is not None:
        served = "" if has_server(target) else f", and `mendflow serve{_folder_option(target)}` then does what it says"
        say(
            f"this runs {flow.name} once, whatever its `on:` says; `{_deploy_command(file, target)}` deploys it with"
            f" its `on:`{served}",
            err=True,
        )


async def deployed_before(client: Client, flow: Flow) -> FlowView | None:
    """What somebody has deployed under the flow's name."""
    try:
        view = await client.flow(flow.name)
    except NotFound:
        return None
    return None if view.tentative else view


def say_what_stays(deployed: FlowView | None, flow: Flow, case: CaseView, file: str, target: ServerTarget) -> None:
    """Who starts a case from a changed file may think that the file is what runs tonight."""
    if deployed is None or case.digest == deployed.digest:
        return
    deploying = f"; `{_deploy_command(file, target)}` deploys this file" if flow.triggers is None else ""
    say(
        f"{flow.name} version {deployed.version} stays deployed: schedules, watches and `mendflow start {flow.name}` go"
        f" on with it{deploying}",
        err=True,
    )


def _deploy_command(file: str, target: ServerTarget) -> str:
    return f"mendflow flows deploy {shlex.quote(file)}{_folder_option(target)}"


def _folder_option(target: ServerTarget) -> str:
    """What selects the same server or data folder in another command."""
    if target.server:
        return "" if os.environ.get(SERVER_VARIABLE) == target.server else f" --server {shlex.quote(target.server)}"
    return folder_option(target.folder)


def warn_of_notices(flow: Flow, given: str) -> None:
    """Who relies on being told must know, however quiet the command is; `given` is told by --notify."""
    notices = flow.triggers.notices if flow.triggers is not None else ()
    receivers = [each for each in dict.fromkeys(each for notice in notices for each in notice.notify) if each != given]
    if receivers:
        say(
            f"{', '.join(receivers)} is told of the end only where {flow.name} is deployed, by its `on:`;"
            " --notify ADDRESS tells an address of the end of this run",
            err=True,
        )


def mail_remarks(flow: Flow) -> list[str]:
    """Mail addresses in the `on:` of a flow, where no mail server is known."""
    notices = flow.triggers.notices if flow.triggers is not None else ()
    people = dict.fromkeys(each for notice in notices for each in notice.notify if "@" in each and "://" not in each)
    if not people or mail_of_environment().smtp:
        return []
    return [
        f"{flow.name}: no mail server is known here for {', '.join(people)}; the server that the flow is deployed at"
        " needs --smtp smtp://HOST, or MENDFLOW_SMTP"
    ]


def trigger_lines(triggers: FlowTriggers) -> list[str]:
    """What happens by itself, one sentence each."""
    found = [_arrival_text(triggers.files)] if triggers.files is not None else []
    found += [_schedule_text(triggers.schedule)] if triggers.schedule is not None else []
    return found + [_notice_text(notice) for notice in triggers.notices]


def _arrival_text(files: FileArrival) -> str:
    stable = duration_text(files.stable_ms)
    return f"each file {files.match} in {files.where}, unchanged for {stable}, starts a case as input {files.input}"


def _schedule_text(schedule: ScheduleTrigger) -> str:
    when = when_text(spec_of_trigger("", schedule))
    return f"each due time of `{when}`, {schedule.timezone}, starts a case; `mendflow schedules` lists the next"


def _notice_text(notice: EndNotice) -> str:
    return f"a case that ends as {' or '.join(notice.on)} is told to {', '.join(notice.notify)}"


def short_triggers(triggers: FlowTriggers | None) -> str:
    """For one cell of a table."""
    if triggers is None:
        return ""
    found = [f"{triggers.files.match} in {triggers.files.where}"] if triggers.files is not None else []
    found += [when_text(spec_of_trigger("", triggers.schedule))] if triggers.schedule is not None else []
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


def need_remarks(flow: Flow) -> list[str]:
    """The named limits and the secrets that a flow's jobs use and that are not set where it would be run; nothing if
    there is nobody to be asked."""
    target = ServerTarget(server=os.environ.get(SERVER_VARIABLE, ""), data=os.environ.get(DATA_VARIABLE, ""))

    async def ask() -> list[str]:
        async with connect(target) as client:
            return await needs_told(client, flow)

    if target.above is not None or not (has_server(target) or target.has_store):
        return []
    try:
        return run_async(ask())
    except RequestError:
        return []


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
