"""Commands about data sets: files that arrive, and the cases that they start."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.list_options import Limit
from mendflow.cli.options import Project
from mendflow.cli.printing import print_answer, print_json, print_table, say, state_text
from mendflow.client import Client
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.data_sets import DataSetView
from mendflow.core.model.errors import InvalidRequest
from mendflow.formats.data_sets import load_data_set_file
from mendflow.formats.spelling import nearest_word
from mendflow.pages.formatting import short_time_text, size_text

app = typer.Typer()
sets = typer.Typer(invoke_without_command=True)
app.add_typer(sets, name="sets")

LOOK_S = 0.5
SetArgument = Annotated[str, typer.Argument(metavar="SET", help="A data set's name.")]


@sets.callback()
@with_context
def list_sets(
    context: CommandContext, every: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False
) -> None:
    """List the data sets; create one, add files, close it."""
    if context.inner:
        return
    views = context.run(lambda client: client.data_sets(every=every))
    if context.json:
        print_json(views)
    elif not views:
        say("There are no data sets; describe them in a file and run mendflow data sets apply FILE.")
    else:
        heads = ("set", "state", "files", "size", "waiting", "batches", "follows")
        print_table(heads, [_row(view) for view in views])


def _row(view: DataSetView) -> Sequence[str]:
    waiting = sum(each.waiting_files for each in view.gatherings)
    batches = sum(sum(each.batches.values()) for each in view.gatherings)
    flows = ", ".join(each.flow for each in view.gatherings)
    return (view.name, view.state, str(view.files), size_text(view.bytes), str(waiting), str(batches), flows)


@sets.command("apply")
@with_context
def apply(
    context: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Data sets and watches, in YAML.")],
    project: Project = "",
) -> None:
    """Create or change the data sets and watches described in a file."""
    found = load_data_set_file(Path(file))

    async def put(client: Client) -> tuple[list[DataSetView], list[str]]:
        views = [await client.put_data_set(wish, project=project) for wish in found.sets]
        for watch in found.watches:
            await client.put_watch(watch)
        return views, await open_sets(client)

    views, known = context.run(put, changes=True, begin=True)
    if context.json:
        print_json(views)
        return
    for view in views:
        say(f"{view.name} is {view.state}" + (f", after {', '.join(view.after)}" if view.after else ""))
    for watch in found.watches:
        say(f"{watch.element}:{watch.prefix} is watched for {watch.data_set}")
        warn_if_new(watch.data_set, known)


@sets.command("show")
@with_context
def show(context: CommandContext, name: SetArgument) -> None:
    """Show a data set: files that wait, batches that started, and what the next batch waits for."""
    view = context.run(lambda client: client.data_set(name))
    if context.json:
        print_json(view)
        return
    late = f", and {view.late} that came too late" if view.late else ""
    say(f"{view.name} is {view.state}: {view.files} files, {size_text(view.bytes)}{late}")
    heads = ("gathering", "flow", "a case for", "waiting", "due", "batches")
    rows = [
        (
            each.name,
            each.flow,
            each.rule,
            str(each.waiting_files),
            short_time_text(each.due_at) if each.due_at else "",
            ", ".join(f"{count} {status}" for status, count in each.batches.items()),
        )
        for each in view.gatherings
    ]
    if rows:
        print_table(heads, rows, fold=2)
    for reason in view.waits_for:
        say(f"  {reason}")


@sets.command("files")
@with_context
def files(context: CommandContext, name: SetArgument, limit: Limit = 1000) -> None:
    """List the files of a data set, in order of arrival."""
    found = context.run(lambda client: client.set_files(name, limit=limit))
    if context.json:
        print_json(found)
    else:
        rows = [(each.logical or each.name, size_text(each.bytes), each.sha256[:12]) for each in found]
        print_table(("file", "size", "sha-256"), rows)


@sets.command("batches")
@with_context
def batches(
    context: CommandContext,
    name: SetArgument,
    status: Annotated[
        str,
        typer.Option(
            "--status", metavar="STATUS", help="Only batches with this status, such as failed.", show_default=False
        ),
    ] = "",
    limit: Limit = 100,
) -> None:
    """List the batches of a data set and their cases, the newest first."""
    found = context.run(lambda client: client.set_batches(name, status=status, limit=limit))
    if context.json:
        print_json(found)
        return
    heads = ("batch", "files", "size", "because of", "case", "status", "problem")
    rows = [
        (f"{b.gathering}/{b.number}", str(b.files), size_text(b.bytes), b.why, b.case, state_text(b.status), b.problem)
        for b in found
    ]
    print_table(heads, rows, fold=6)


@sets.command("add")
@with_context
def add(
    context: CommandContext,
    name: SetArgument,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="lfn:NAME for a logical file; otherwise a local file.")
    ],
    project: Project = "",
) -> None:
    """Add files to a data set. A local file is uploaded to the server."""

    async def tell(client: Client) -> tuple[DataSetView, list[str]]:
        known = await open_sets(client)
        found = [each if each.startswith(LOGICAL_PREFIX) else await client.upload(each) for each in files]
        return await client.add_to_set(name, found, project=project), known

    view, known = context.run(tell, changes=True)
    _print_view(context, view)
    if not context.json and view.state == "open":
        warn_if_new(name, known)


@sets.command("close")
@with_context
def close(context: CommandContext, name: SetArgument) -> None:
    """Close a data set: no more files come, and the files that wait become a last batch."""
    _print_view(context, context.run(lambda client: client.close_set(name), changes=True))


@sets.command("retry")
@with_context
def retry(
    context: CommandContext,
    name: SetArgument,
    batch: Annotated[str, typer.Argument(metavar="BATCH", help="GATHERING/NUMBER, as the list prints it.")],
) -> None:
    """Start another case for a batch whose case did not complete."""
    gathering, _, number = batch.rpartition("/")
    if not gathering or not number.isdecimal():
        raise InvalidRequest(
            f"{batch!r} is not a batch; give GATHERING/NUMBER, as mendflow data sets batches {name} shows it"
        )
    view = context.run(lambda client: client.retry_batch(name, gathering, int(number)), changes=True)
    print_answer(context.json, view, f"{batch} is retried (attempt {view.attempt})")


@sets.command("wait")
@with_context
def wait(context: CommandContext, name: SetArgument) -> None:
    """Wait until a data set is closed and all its cases have completed; a failed case ends the wait."""

    async def over(client: Client) -> DataSetView:
        while True:
            view = await client.data_set(name)
            if view.state == "over" or any("mendflow data sets retry" in reason for reason in view.waits_for):
                return view
            await asyncio.sleep(LOOK_S)

    view = context.run(over)
    _print_view(context, view)
    if view.state != "over":
        raise typer.Exit(1)


def _print_view(context: CommandContext, view: DataSetView) -> None:
    if context.json:
        print_json(view)
        return
    say(f"{view.name} is {view.state}: {view.files} files")
    for reason in view.waits_for:
        say(f"  {reason}")


async def open_sets(client: Client) -> list[str]:
    return [view.name for view in await client.data_sets() if view.state == "open"]


def warn_if_new(name: str, known: Sequence[str]) -> None:
    """A misspelt name creates a new data set: warn about it."""
    if name not in known:
        meant = nearest_word(name, known)
        hint = f" (did you mean {meant}?)" if meant else ""
        say(f"  {name} is new; its files start no cases until mendflow data sets apply describes them{hint}")
