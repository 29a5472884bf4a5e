"""Commands about the sources that conditions read as `sources.NAME`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.sources import SourceKind, SourceSpec, SourceView
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.lazy import LazyModule
from mendflow.pages.formatting import duration_text

if TYPE_CHECKING:
    from mendflow.formats import sources as source_files
else:
    source_files = LazyModule("mendflow.formats.sources")

app = typer.Typer()
sources = typer.Typer(invoke_without_command=True)
app.add_typer(sources, name="sources")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A source's name.")]


@sources.callback()
@with_context
def list_sources(context: CommandContext) -> None:
    """List the sources that conditions can read; add, import, try or remove one."""
    if context.inner:
        return
    views = context.run(lambda client: client.rule_sources())
    if context.json:
        print_json(views)
    elif not views:
        say("There are no sources; add one with mendflow rules sources add NAME --http URL.")
    else:
        heads = ("source", "kind", "time limit", "cache", "secret", "when away", "address")
        print_table(heads, [_row(view) for view in views], fold=6)


def _row(view: SourceView) -> tuple[str, ...]:
    away = "the condition errs" if view.away == "error" else msgspec.json.encode(view.value).decode()
    limits = duration_text(view.timeout_ms), duration_text(view.cache_ms) if view.cache_ms else "none"
    address = f"{view.address}: {view.query}" if view.query else view.address
    return view.name, view.kind, *limits, "yes" if view.has_secret else "no", away, address


@sources.command("add")
@with_context
def add(
    context: CommandContext,
    name: NameArgument,
    http: Annotated[str, typer.Option("--http", metavar="URL", help="Get this address.", show_default=False)] = "",
    command: Annotated[
        str, typer.Option("--command", metavar="COMMAND", help="Run this command on the server.", show_default=False)
    ] = "",
    sql: Annotated[
        str, typer.Option("--sql", metavar="QUERY", help="Ask this of a database.", show_default=False)
    ] = "",
    database: Annotated[
        str,
        typer.Option(
            "--database",
            metavar="URL",
            help="The database of --sql: postgresql://... or sqlite:///...",
            show_default=False,
        ),
    ] = "",
    file: Annotated[
        str, typer.Option("--file", metavar="PATH", help="Read this file of the server.", show_default=False)
    ] = "",
    select: Annotated[
        str, typer.Option("--select", metavar="PATH", help="Only this part of a JSON answer.", show_default=False)
    ] = "",
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="How long it may take.")] = "2 s",
    cache: Annotated[str, typer.Option("--cache", metavar="TIME", help="How long an answer is used again.")] = "10 s",
    secret_file: Annotated[
        str, typer.Option("--secret-file", metavar="FILE", help="A file with its secret.", show_default=False)
    ] = "",
    when_away: Annotated[
        str,
        typer.Option(
            "--when-away",
            metavar="JSON",
            help="The value if the source is away; default: the condition errs.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Register a source, or replace it."""
    kind, address = _address(http, command, sql, database, file)
    spec = SourceSpec(
        name=name,
        kind=kind,
        address=address,
        query=sql,
        select=select,
        timeout_ms=_time("--timeout", timeout),
        cache_ms=_time("--cache", cache),
        secret=source_files.read_secret(Path(secret_file)) if secret_file else "",
        away="value" if when_away else "error",
        value=_value(when_away) if when_away else None,
    )
    view = context.run(lambda client: client.put_rule_source(spec), changes=True, begin=True)
    print_answer(context.json, view, f"conditions read it as sources.{name}; try it: mendflow rules sources try {name}")


def _address(http: str, command: str, sql: str, database: str, file: str) -> tuple[SourceKind, str]:
    given: dict[SourceKind, str] = {"http": http, "command": command, "sql": sql, "file": file}
    kinds = [kind for kind, text in given.items() if text]
    if len(kinds) != 1:
        raise InvalidRequest("a source is one of --http, --command, --sql and --file")
    if bool(sql) != bool(database):
        raise InvalidRequest("--sql and --database go together")
    return kinds[0], database if sql else given[kinds[0]]


def _time(option: str, text: str) -> int:
    found = 0 if text.strip() == "0" else duration_ms(text)
    if found is None:
        raise InvalidRequest(f"{option} {text!r} is not a time; write one like {DURATION_EXAMPLES}")
    return found


def _value(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(
            f"--when-away {text!r:.100} is not JSON ({error}); a text has quotes: '\"none\"'"
        ) from None


@sources.command("import")
@with_context
def import_(
    context: CommandContext, file: Annotated[str, typer.Argument(metavar="FILE", help="A YAML file of sources.")]
) -> None:
    """Register all sources of a file; those of the same names are replaced."""
    specs = source_files.load_sources(Path(file))

    async def put(client: Client) -> list[SourceView]:
        return [await client.put_rule_source(spec) for spec in specs]

    views = context.run(put, changes=True, begin=True)
    print_answer(context.json, views, f"registered: {', '.join(view.name for view in views)}")


@sources.command("try")
@with_context
def try_(
    context: CommandContext,
    name: NameArgument,
    decision: Annotated[
        str,
        typer.Option(
            "--decision", metavar="ID", help="Fill {...} from the context of this decision.", show_default=False
        ),
    ] = "",
) -> None:
    """Ask a source now, and print its value."""
    view = context.run(lambda client: client.try_rule_source(name, decision))
    said = f"{msgspec.json.encode(view.value).decode()}  ({view.took_ms} ms)" if view.ok else f"{name}: {view.message}"
    print_answer(context.json, view, said)
    if not view.ok:
        raise typer.Exit(1)


@sources.command("remove")
@with_context
def remove(context: CommandContext, name: NameArgument) -> None:
    """Remove a source."""
    view = context.run(lambda client: client.remove_rule_source(name), changes=True)
    print_answer(context.json, view, f"{view.name} is removed")
