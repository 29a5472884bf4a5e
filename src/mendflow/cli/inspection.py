"""Commands about one subject: why, watch, report."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.text import Text

from mendflow.cli.case_ending import collect_ending
from mendflow.cli.case_origins import with_own_paths
from mendflow.cli.case_references import FORMS, find_reference, reference_text
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import LOOK_EVERY_S, connect, has_server, run_async, serves
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.options import (
    USUAL_TARGET,
    CaseArgument,
    Json,
    OutputDir,
    Overwrite,
    Quiet,
    ServerTarget,
    complete_from_server,
    with_target,
)
from mendflow.cli.output_files import fetch_outputs
from mendflow.cli.output_paths import check_folder, check_report
from mendflow.cli.printing import STYLES, print_json, print_output, say
from mendflow.cli.progress import PATIENCE_S, follow, progress
from mendflow.cli.repair_trails import show_repairs
from mendflow.cli.server_file import find_server
from mendflow.cli.summary import print_held, print_summary, result_json, write_report
from mendflow.cli.wait_explanations import WaitExplainer
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, Unreachable
from mendflow.core.model.repair_views import Explanation
from mendflow.core.model.views import CASE_END_STATES, CaseOrigin, CaseView
from mendflow.pages.formatting import one_line, plain_text

app = typer.Typer()

T = TypeVar("T")

RESTART_S = 3.0
"""So long a server that ended may take until the next one begins to start."""

UNFINISHED = ("running", "waiting", "staging", "available", "suspended", "offered", "claimed")


@app.command("why")
@with_context
def why(
    context: CommandContext,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT",
            help=f"A case, a pilot, a schedule, or a job or an item: {FORMS}.",
            autocompletion=complete_from_server("subjects"),
        ),
    ] = "last",
    item: Annotated[
        str, typer.Argument(metavar="[ITEM]", help="A job or an item of that case, as CASE:ITEM.", show_default=False)
    ] = "",
    trail: Annotated[
        bool, typer.Option("--trail", help="Show how the rules were evaluated: each condition, with its values.")
    ] = False,
) -> None:
    """Say why a case, item, job, pilot or schedule is in its state."""

    async def ask(client: Client) -> Explanation:
        if not item:
            return await client.why(await reference_text(client, subject))
        named = await find_reference(client, subject, item)
        return await client.why(f"{named.case}:{named.item}")

    view = context.run(ask)
    if context.json:
        print_json(view)
        return
    say(Text.assemble((view.subject, "bold"), " ", (view.state, STYLES.get(view.state, ""))))
    url = context.target.server or (found.url if (found := find_server(context.target.folder)) else "URL")
    say(plain_text(_with_address(view.sentence, url)))
    for fact in view.facts:
        say(f"  - {one_line(_with_address(fact, url), 500)}")
    print_output(view.output)
    show_repairs(view.repairs, view.subject, trail=trail)
    if view.state in UNFINISHED and not has_server(context.target):
        case = view.subject.partition(":")[0].partition("/")[0]
        if not any(f"mendflow resume {case}" in told for told in (view.sentence, *view.facts)):
            say(f"no server runs it now; continue with mendflow resume {case}")


def _with_address(sentence: str, url: str) -> str:
    """The sentence with this server's address in the commands that it names."""
    return sentence.replace("`mendflow pilot --server URL`", f"`mendflow pilot --server {url}`")


@app.command("watch")
@with_target
def watch(
    case: CaseArgument = "last",
    output_dir: OutputDir = "",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    json: Json = False,
    target: ServerTarget = USUAL_TARGET,
) -> None:
    """Show the progress of a case until it ends."""
    given = Path(output_dir).absolute() if output_dir else None
    check_folder("--output-dir", given)

    async def seen() -> ExitCode:
        view = await _watch_case(target, case, quiet=quiet)
        if view.status not in CASE_END_STATES:
            return print_held(view, json=json)
        kept = "" if target.server else await _ask_with_retry(target, partial(_kept_folder, view))
        folder = given or Path(kept or f"outputs/{view.id}")
        fetched = await _ask_with_retry(target, lambda client: fetch_outputs(client, view, folder, overwrite=overwrite))
        if json:
            print_json(result_json(view, fetched.paths, None))
        else:
            ending = await _ask_with_retry(target, lambda client: collect_ending(client, view))
            print_summary(ending, fetched.paths, wanted_in=given)
            fetched.say_others()
        fetched.demand_all(view.id)
        return ExitCode.OK if view.status == "completed" else ExitCode.CASE_FAILED

    raise typer.Exit(run_async(seen()))


@app.command("report")
@with_target
def report(
    case: CaseArgument = "last",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The HTML page to write; default: CASE.html.", show_default=False
        ),
    ] = "",
    target: ServerTarget = USUAL_TARGET,
) -> None:
    """Write the HTML report of a case."""

    async def write() -> Path:
        async with connect(target) as client:
            view = await client.case(case)
            path = Path(output or f"{view.id}.html")
            check_report("--output", path)
            return await write_report(client, await collect_ending(client, view), path)

    say(str(run_async(write())))


async def _kept_folder(case: CaseView, client: Client) -> str:
    """Where the caller wanted the outputs when he started the case; empty if he did not say."""
    return ((await with_own_paths(client, case)).origin or CaseOrigin()).output_dir


async def _watch_case(target: ServerTarget, case: str, *, quiet: bool) -> CaseView:
    """The case when it has ended, or is held. A server that is restarted meanwhile is waited for."""
    while True:
        if await serves(target):
            try:
                async with connect(target) as client:
                    patience_s = PATIENCE_S if target.server else 1.0
                    return await _show_until_end(client, case, quiet=quiet, patience_s=patience_s)
            except Unreachable:
                if target.server:
                    raise
        view = await _ask_with_retry(target, lambda client: client.case(case))
        if view.status in CASE_END_STATES:
            return view
        if not await _comes_back(target):
            raise Conflict(
                f"no server runs on {target.folder}, so nothing of {view.id} runs; continue with mendflow resume"
                f" {view.id}, or start the server that had it: mendflow serve"
            )


async def _comes_back(target: ServerTarget) -> bool:
    """Whether a server starts within a moment: between the end of one and the start of the next nobody is there."""
    for _ in range(round(RESTART_S / LOOK_EVERY_S)):
        if await serves(target):
            return True
        await asyncio.sleep(LOOK_EVERY_S)
    return False


async def _show_until_end(client: Client, case: str, *, quiet: bool, patience_s: float) -> CaseView:
    shown = progress(quiet=quiet)
    try:
        id, waits = (await client.case(case)).id, WaitExplainer(client, quiet=quiet)
        ended = await follow(client, id, shown, patience_s=patience_s, waits=waits)
    finally:
        shown.close()
    assert ended is not None, "follow without a stop event returns only when the case has ended"
    return ended


async def _ask_with_retry(target: ServerTarget, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask; if the server on the folder has just ended, ask the folder."""
    try:
        async with connect(target) as client:
            return await question(client)
    except Unreachable:
        if target.server:
            raise
    async with connect(target) as client:
        return await question(client)
