"""Commands about watched storage elements."""

from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.data_sets import open_sets, warn_if_new
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client import Client
from mendflow.core.model.data_sets import FolderWatch, WatchView
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms

app = typer.Typer()
watches = typer.Typer(invoke_without_command=True)
app.add_typer(watches, name="watch")


@watches.callback()
@with_context
def list_watches(context: CommandContext) -> None:
    """List the folders that are watched for new files; add or remove one."""
    if context.inner:
        return
    views = context.run(lambda client: client.watches())
    if context.json:
        print_json(views)
    elif not views:
        say("No folder is watched; see mendflow data watch add --help.")
    else:
        heads = ("watch", "where", "files", "for", "known", "unsettled", "left out", "problem")
        rows = [
            (
                view.watch.name,
                f"{view.watch.element}:{view.watch.prefix}",
                view.watch.match,
                view.watch.data_set,
                str(view.known),
                str(view.unsettled),
                str(view.left_out),
                view.problem,
            )
            for view in views
        ]
        print_table(heads, rows, fold=7)


@watches.command("add")
@with_context
def add(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for the watch.")],
    where: Annotated[str, typer.Argument(metavar="ELEMENT[:PATH]", help="A storage element, and a path below it.")],
    data_set: Annotated[str, typer.Option("--set", metavar="SET", help="The data set that new files are added to.")],
    match: Annotated[str, typer.Option("--match", metavar="PATTERN", help="Which files, such as *.dat.")] = "*",
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="How often to look for changes.")] = "10 s",
    stable: Annotated[
        str, typer.Option("--stable", metavar="TIME", help="A file that has not changed for this long is complete.")
    ] = "10 s",
) -> None:
    """Watch a folder of a storage element, or change how it is watched."""
    element, _, prefix = where.partition(":")
    watch = FolderWatch(
        name=name,
        element=element,
        prefix=prefix,
        data_set=data_set,
        match=match,
        every_ms=_time(every, "--every"),
        stable_ms=_time(stable, "--stable"),
    )

    async def put(client: Client) -> tuple[WatchView, list[str]]:
        return await client.put_watch(watch), await open_sets(client)

    view, known = context.run(put, changes=True)
    if context.json:
        print_json(view)
    else:
        say(f"{where} is watched for {data_set}")
        warn_if_new(data_set, known)


@watches.command("remove")
@with_context
def remove(
    context: CommandContext, name: Annotated[str, typer.Argument(metavar="WATCH", help="A watch's name.")]
) -> None:
    """Stop watching a folder; files that were found stay in their data set."""
    view = context.run(lambda client: client.remove_watch(name), changes=True)
    print_answer(context.json, view, f"{view.watch.name} is removed")


def _time(text: str, option: str) -> int:
    made = duration_ms(text)
    if made is None:
        raise InvalidRequest(f"{option} {text!r} is not a time; write one like {DURATION_EXAMPLES}")
    return made
