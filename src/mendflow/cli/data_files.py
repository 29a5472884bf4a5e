"""Commands about logical files and their replicas."""

from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.list_options import Limit
from mendflow.cli.options import Project
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client.files import reference_of
from mendflow.core.data.paths import logical_name
from mendflow.core.model.data import LogicalFile, Replica
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.values import FileRef
from mendflow.pages.formatting import short_time_text, size_text

app = typer.Typer()
data = typer.Typer(invoke_without_command=True)
app.add_typer(data, name="files")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A logical name, such as /store/raw/a.dat.")]
OnOption = Annotated[str, typer.Option("--on", metavar="ELEMENT", help="The storage element that has it.")]
PathOption = Annotated[
    str,
    typer.Option(
        "--path",
        metavar="PATH",
        help="Its path on the element, if the element's rules do not give it.",
        show_default=False,
    ),
]


@data.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the logical files; add, show, locate or remove one."""
    if not context.inner:
        _list(context, context.run(lambda client: client.data()))


@data.command("list")
@with_context
def list_files(
    context: CommandContext,
    prefix: Annotated[
        str, typer.Argument(metavar="PREFIX", help="Only names that begin with this.", show_default=False)
    ] = "",
    data_set: Annotated[
        str, typer.Option("--set", metavar="SET", help="Only files of this data set.", show_default=False)
    ] = "",
    after: Annotated[
        str, typer.Option("--after", metavar="NAME", help="Only names after this one.", show_default=False)
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Also names reserved for a running job.")] = False,
    limit: Limit = 100,
) -> None:
    """List logical files, by name."""
    found = context.run(
        lambda client: client.data(prefix=prefix, data_set=data_set, after=after, limit=limit, every=every)
    )
    _list(context, found)


def _list(context: CommandContext, files: list[LogicalFile]) -> None:
    if context.json:
        print_json(files)
    elif not files:
        say("The catalogue has no such files; add one with mendflow data files add NAME, or publish one from a flow.")
    else:
        heads = ("name", "size", "sha256", "on", "set", "added")
        print_table(heads, [_row(file) for file in files])


def _row(file: LogicalFile) -> tuple[str, ...]:
    on = ", ".join(dict.fromkeys(replica.element for replica in file.replicas)) or "being written"
    added = short_time_text(file.added_at) if file.added_at else ""
    return (file.name, size_text(file.bytes), file.sha256[:12], on, file.data_set, added)


@data.command("show")
@with_context
def show(context: CommandContext, name: NameArgument) -> None:
    """Show a logical file and its replicas."""
    _print_view(context, context.run(lambda client: client.datum(name)))


@data.command("where")
@with_context
def where(
    context: CommandContext,
    name: NameArgument,
    site: Annotated[
        str, typer.Option("--site", metavar="SITE", help="For a pilot at this site.", show_default=False)
    ] = "",
    storage: Annotated[
        str,
        typer.Option("--storage", metavar="ELEMENT", help="For a pilot near this storage element.", show_default=False),
    ] = "",
) -> None:
    """List where a pilot would read a file, the nearest place first."""
    found = context.run(lambda client: client.places(name, site=site, storage=storage))
    if context.json:
        print_json(found)
        return
    for each in found:  # in full, so that it can be copied from here
        say(f"{each.element.name}: {each.url}")


@data.command("add")
@with_context
def add(
    context: CommandContext,
    name: NameArgument,
    on: OnOption,
    path: PathOption = "",
    file: Annotated[
        str,
        typer.Option(
            "--file", metavar="FILE", help="A local copy, to compute digest and size from.", show_default=False
        ),
    ] = "",
    sha256: Annotated[
        str,
        typer.Option("--digest", metavar="SHA256", help="Its SHA-256, if there is no local copy.", show_default=False),
    ] = "",
    size: Annotated[int, typer.Option("--bytes", min=0, metavar="N", help="Its size.", show_default=False)] = 0,
    data_set: Annotated[
        str, typer.Option("--set", metavar="SET", help="The data set that it belongs to.", show_default=False)
    ] = "",
    meta: Annotated[
        list[str] | None,
        typer.Option("--meta", metavar="KEY=TEXT", help="Metadata.", show_default=False),
    ] = None,
    project: Project = "",
) -> None:
    """Add a file that is on a storage element to the catalogue. Nothing is copied."""
    if bool(file) == bool(sha256):
        raise InvalidRequest("say what the file is: give --file with a copy of it, or --digest and --bytes")
    known = reference_of(Path(file)) if file else FileRef(sha256=sha256, bytes=size, name="")
    wish = LogicalFile(
        name=logical_name(name),
        sha256=known.sha256,
        bytes=known.bytes,
        replicas=(Replica(element=on, path=path),),
        data_set=data_set,
        meta=_pairs(meta or []),
    )
    _print_view(context, context.run(lambda client: client.add_data(wish, project=project), changes=True))


def _pairs(given: list[str]) -> dict[str, str]:
    for pair in given:
        if not pair.partition("=")[0] or "=" not in pair:
            raise InvalidRequest(f"--meta {pair!r} has no value; write --meta KEY=TEXT")
    return dict(pair.split("=", maxsplit=1) for pair in given)


@data.command("remove")
@with_context
def remove(context: CommandContext, name: NameArgument) -> None:
    """Remove a logical file from the catalogue. Its replicas are not deleted."""
    removed = context.run(lambda client: client.remove_data(name), changes=True)
    print_answer(context.json, removed, f"{removed.name} is removed from the catalogue; its replicas are not deleted")


@data.command("add-replica")
@with_context
def add_replica(context: CommandContext, name: NameArgument, on: OnOption, path: PathOption = "") -> None:
    """Add another replica of a file to the catalogue."""
    _print_view(
        context, context.run(lambda client: client.add_replica(name, Replica(element=on, path=path)), changes=True)
    )


@data.command("remove-replica")
@with_context
def remove_replica(context: CommandContext, name: NameArgument, on: OnOption, path: PathOption = "") -> None:
    """Remove a replica from the catalogue. The file itself is not deleted."""
    _print_view(
        context, context.run(lambda client: client.remove_replica(name, Replica(element=on, path=path)), changes=True)
    )


def _print_view(context: CommandContext, file: LogicalFile) -> None:
    if context.json:
        print_json(file)
        return
    say(f"{file.name}: {file.bytes} bytes, sha256 {file.sha256}")
    for replica in file.replicas:
        say(f"  on {replica.element}" + (f" at {replica.path}" if replica.path else ""))
    for job, replica in file.writing.items():
        say(f"  job {job} writes it to {replica.element}")
    if file.data_set:
        say(f"  in the data set {file.data_set}")
    if file.made_by:
        say(f"  made by job {file.made_by}")
    for key, text in file.meta.items():
        say(f"  {key}: {text}")
