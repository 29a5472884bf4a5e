"""`mendflow ui`: opens the web app, of a server that runs, or of a data folder for as long as the command does."""

from typing import Annotated

import typer

from mendflow.cli.case_references import find_reference
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import connect, has_server, run_async, say_folder
from mendflow.cli.interrupt import interrupts
from mendflow.cli.local_cluster import start_local_cluster
from mendflow.cli.options import ServerTarget, Slots, complete_from_server
from mendflow.cli.printing import print_json, say
from mendflow.cli.web_pages import address_of, case_path, show_page
from mendflow.client import Client
from mendflow.core.model.errors import NotFound
from mendflow.wiring import run as run_loop

app = typer.Typer()

NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address, and open nothing.")]


@app.command("ui")
@with_context
def ui(
    context: CommandContext,
    case: Annotated[
        str,
        typer.Argument(
            metavar="[CASE]",
            help="Show this case, or `last`; default: the home page.",
            autocompletion=complete_from_server("cases"),
            show_default=False,
        ),
    ] = "",
    slots: Slots = 0,
    no_browser: NoBrowser = False,
) -> None:
    """Open the web app in a browser, signed in."""
    if has_server(context.target):
        if slots:
            say("--jobs is for a server that this command starts, and one runs already", err=True)
        run_async(_show_server(context, case, browser=not no_browser))
        return
    target = context.target
    if case and not target.has_store:
        raise NotFound(
            f"there is no case at {target.folder} yet: run a flow here first (mendflow run FLOW), or name a server by"
            " --server URL or MENDFLOW_SERVER"
        )
    if not target.has_store:
        say(f"there is nothing at {target.folder} yet; flows can be written and started on the page", err=True)
    say_folder(target)
    run_loop(_show_folder(target, case, slots, json=context.json, browser=not no_browser))


async def _show_server(context: CommandContext, case: str, *, browser: bool) -> None:
    async with connect(context.target) as client:
        await _show(client, case, json=context.json, browser=browser)


async def _show_folder(target: ServerTarget, case: str, slots: int, *, json: bool, browser: bool) -> None:
    """Serve the folder until Ctrl-C, with a pilot, so that what is started on the page runs, and what is
    due by the clock. Cases that were stopped stay so until somebody resumes them."""
    with interrupts() as caught:
        async with start_local_cluster(target.folder, caught.event, slots=slots, stays=True) as cluster:
            async with Client(cluster.url) as client:
                await _show(client, case, json=json, browser=browser)
            say("it is served until you press Ctrl-C", err=True)
            await caught.event.wait()
            cluster.check()
            say("stopping; nothing is lost", err=True)


async def _show(client: Client, case: str, *, json: bool, browser: bool) -> None:
    path = case_path((await client.case((await find_reference(client, case)).case)).id) if case else "/"
    if json:
        found = await address_of(client, path)
        print_json({"url": found.url, "sign_in_url": found.private})
    else:
        await show_page(client, path, browser=browser)
