"""`mendflow rerun`: runs a case again, or all cases that failed by one cause."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mendflow.cli.case_origins import (
    changed_inputs,
    corrected_flow,
    given_inputs,
    say_paths_of_others,
    warn_of_changed_files,
    with_own_paths,
)
from mendflow.cli.case_runs import rerun_group_locally, run_locally
from mendflow.cli.connection import connect, has_server, run_async, say_folder
from mendflow.cli.deployment import with_stored_files
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.flow_arguments import load_one, source_of
from mendflow.cli.flow_uploads import flow_to_send, sends_files
from mendflow.cli.group_consent import may_rerun_group
from mendflow.cli.interrupt import interrupts
from mendflow.cli.options import (
    USUAL_TARGET,
    Again,
    NoCache,
    ServerTarget,
    Slots,
    complete_from_server,
    with_target,
)
from mendflow.cli.printing import print_json, say
from mendflow.cli.remote_runs import Begin, RunOptions, run_on_server
from mendflow.cli.rule_applying import restart_group, say_rerun
from mendflow.cli.run_arguments import USUAL_ARGUMENTS, RunArguments, Wait, with_run_arguments
from mendflow.cli.unfinished_cases import say_continued
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.views import CASE_END_STATES, CachePolicy, CaseOrigin, CaseView
from mendflow.wiring import run as run_loop

app = typer.Typer()


@app.command("rerun")
@with_run_arguments
@with_target
def rerun(
    case: Annotated[
        str,
        typer.Argument(metavar="[CASE]", help="A case's id, or `last`.", autocompletion=complete_from_server("cases")),
    ] = "",
    group: Annotated[
        str,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Let every failed case of this group of failures go on from where it stood.",
            show_default=False,
            autocompletion=complete_from_server("groups"),
        ),
    ] = "",
    from_failed: Annotated[
        bool, typer.Option("--from-failed", help="Run what did not succeed; refuse if nothing failed.")
    ] = False,
    flow: Annotated[
        str,
        typer.Option(
            "--flow",
            metavar="FILE",
            help="Run this flow file instead of the one the case was started with.",
            show_default=False,
        ),
    ] = "",
    target: ServerTarget = USUAL_TARGET,
    slots: Slots = 0,
    arguments: RunArguments = USUAL_ARGUMENTS,
    no_cache: NoCache = False,
    again: Again = None,
    unchanged: Annotated[
        bool, typer.Option("--unchanged", help="Use the files of the earlier case, even if they were changed since.")
    ] = False,
    wait: Wait = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --group: begin without asking.")] = False,
) -> None:
    """Run a case again; results of unchanged jobs come from the cache."""
    cache: CachePolicy = "none" if no_cache else "declared"
    if bool(case) == bool(group):
        raise InvalidRequest("say which case to run again, or by --group GROUP all cases that failed by one cause")
    if group and (flow or from_failed):
        raise InvalidRequest("--group lets cases go on as they are; --flow and --from-failed are for one case")
    on_server = has_server(target)
    if group and on_server and (wait or arguments.output_dir or arguments.report):
        raise InvalidRequest(
            "--wait, --output-dir and --report are for one case; see those of the group with mendflow watch CASE"
        )
    if on_server:
        arguments.demand_wait(wait=wait, slots=slots)
    if group:
        options = arguments.options(target.folder, slots)
        raise typer.Exit(_rerun_group(target, group, options, unchanged=unchanged, yes=yes))
    corrected, file = (load_one(flow), str(Path(flow).absolute())) if flow else (None, "")

    async def begin(client: Client) -> CaseView:
        earlier = await client.case(case)
        before, earlier = earlier, await with_own_paths(client, earlier)
        if earlier.stopped and corrected is None and not (no_cache or again):
            say_continued(earlier.id)
            await warn_of_changed_files(client, earlier)
            return await client.resume(earlier.id)
        _demand_ended(earlier)
        if not unchanged:
            say_paths_of_others(before, earlier)
        if from_failed and earlier.status == "completed" and not any(count.failed for count in earlier.counts):
            raise Conflict(f"nothing failed in case {earlier.id}; leave --from-failed out to run it again")
        if corrected is not None:
            new = flow_to_send(corrected, earlier.inputs) if sends_files(target) else corrected
            return await _rerun_with_flow(client, earlier, new, cache, again=again or [], origin=file)
        if unchanged:
            return await client.rerun(earlier.id, from_failed=from_failed, cache=cache, again=again or [])
        if (now := await corrected_flow(client, earlier)) is not None and earlier.origin is not None:
            origin = earlier.origin.flow
            now = flow_to_send(now, earlier.inputs) if sends_files(target) else now
            return await _rerun_with_flow(client, earlier, now, cache, again=again or [], origin=origin)
        changed = await changed_inputs(client, earlier, await client.flow_of(earlier.id))
        return await client.rerun(earlier.id, from_failed=from_failed, cache=cache, inputs=changed, again=again or [])

    if on_server and wait:
        raise typer.Exit(run_async(run_on_server(target, arguments.options(target.folder, 0), begin)))
    if on_server:
        raise typer.Exit(run_async(_start_on_server(target, begin, json=arguments.json)))
    if not target.has_store:
        raise NotFound(f"there is no case at {target.folder} to run again; start one with mendflow run FLOW")
    say_folder(target)
    options = arguments.options(target.folder, slots)
    raise typer.Exit(run_loop(run_locally(options, begin)))


def _rerun_group(target: ServerTarget, group: str, options: RunOptions, *, unchanged: bool, yes: bool) -> ExitCode:
    if has_server(target):
        return run_async(_rerun_group_there(target, group, json=options.json, unchanged=unchanged, yes=yes))
    if not target.has_store:
        raise NotFound(f"there is no case at {target.folder} to run again; start one with mendflow run FLOW")
    say_folder(target)
    return run_loop(rerun_group_locally(group, options, unchanged=unchanged, yes=yes))


async def _rerun_group_there(target: ServerTarget, group: str, *, json: bool, unchanged: bool, yes: bool) -> ExitCode:
    async with connect(target) as client:
        with interrupts() as caught:
            if not await may_rerun_group(client, group, caught, yes=yes):
                return ExitCode.INTERRUPTED
        restarted = await restart_group(client, group, unchanged=unchanged)
    if json:
        print_json(restarted)
    else:
        say_rerun(restarted)
    return ExitCode.OK


def _demand_ended(case: CaseView) -> None:
    """Refuse to run a case again that has not ended: there would be two beside each other."""
    if case.stopped:
        raise Conflict(
            f"the case {case.id} was stopped before its end: mendflow resume {case.id} continues it as it is;"
            f" to run it in another way, mendflow cancel {case.id} first"
        )
    if case.status not in CASE_END_STATES:
        raise Conflict(
            f"the case {case.id} is still {case.status}; see it with mendflow watch {case.id}, or mendflow cancel"
            f" {case.id} first"
        )


async def _rerun_with_flow(
    client: Client, earlier: CaseView, flow: Flow, cache: CachePolicy, *, again: list[str], origin: str
) -> CaseView:
    """The case's inputs, the file's flow."""
    made = msgspec.structs.replace(await with_stored_files(client, flow), source=source_of(origin))
    inputs = await given_inputs(client, earlier, flow)
    came_from = msgspec.structs.replace(earlier.origin or CaseOrigin(), flow=origin)
    return await client.start_with_flow(
        made,
        inputs,
        cache=cache,
        rerun_of=earlier.id,
        origin=came_from,
        again=again,
        on_unhandled=earlier.on_unhandled,
    )


async def _start_on_server(target: ServerTarget, begin: Begin, *, json: bool) -> ExitCode:
    """Start the new case on a running server; its pilots run it."""
    async with connect(target) as client:
        view = await begin(client)
    if json:
        print_json(view)
    else:
        say(f"{view.id} started; see it with mendflow watch {view.id}")
    return ExitCode.OK
