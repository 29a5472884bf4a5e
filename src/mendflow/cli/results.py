"""Commands about the cache: results that can be used again for jobs made from the same."""

from typing import Annotated

import msgspec
import typer

from mendflow.cli.case_references import FORMS, job_id
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.list_options import Limit
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.core.model.values import Value
from mendflow.core.model.views import ResultView
from mendflow.pages.formatting import count_text, short_time_text, size_text

app = typer.Typer()
cache = typer.Typer(invoke_without_command=True)
app.add_typer(cache, name="cache")

PARTS_SHOWN = 20

OfCase = Annotated[
    str, typer.Option("--case", metavar="CASE", help="Only results that this case made.", show_default=False)
]
OfFlow = Annotated[
    str, typer.Option("--flow", metavar="FLOW", help="Only results of this flow's cases.", show_default=False)
]
OfName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Only results of jobs of this name.", show_default=False)
]


@cache.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the results that can be used again; show or drop some."""
    if not context.inner:
        _list(context, context.run(lambda client: client.results()))


@cache.command("list")
@with_context
def list_results(
    context: CommandContext, case: OfCase = "", flow: OfFlow = "", name: OfName = "", limit: Limit = 100
) -> None:
    """List results, the newest first."""
    _list(context, context.run(lambda client: client.results(case=case, flow=flow, name=name, limit=limit)))


def _list(context: CommandContext, found: list[ResultView]) -> None:
    if context.json:
        print_json(found)
    elif not found:
        say("The cache has no such results; mendflow run FLOW makes some.")
    else:
        heads = ("made by", "flow", "at", "last used", "files", "size", "used")
        print_table(heads, [_row(each) for each in found])


def _row(result: ResultView) -> tuple[str, ...]:
    used = short_time_text(result.used_at) if result.used_at else ""
    made_by = f"{result.case}:{result.item}"
    how = "by itself" if result.declared else "with --cached"
    made_at = short_time_text(result.made_at)
    return (made_by, result.flow, made_at, used, str(result.files), size_text(result.bytes), how)


@cache.command("show")
@with_context
def show(
    context: CommandContext,
    job: Annotated[str, typer.Argument(metavar="JOB", help=f"A job or an item: {FORMS}.")],
) -> None:
    """Show the result of a job and what it was made from."""

    async def ask(client: Client) -> ResultView:
        return await client.result(await job_id(client, job))

    result = context.run(ask)
    if context.json:
        print_json(result)
        return
    say(f"made by {result.case}:{result.item} at {short_time_text(result.made_at)}")
    say(f"last used: {short_time_text(result.used_at) if result.used_at else 'never'}")
    say(f"files: {result.files}, {size_text(result.bytes)}")
    say("used: by itself" if result.declared else f"used: with --cached; {result.reason}")
    say("made from:")
    for name, value in result.made_from.items():
        if isinstance(value, dict):
            say(f"  {name}:")
            _say_parts(value)
        else:
            say(f"  {name}: {_text(value)}")


def _say_parts(parts: dict[str, Value]) -> None:
    for name, value in list(parts.items())[:PARTS_SHOWN]:
        say(f"    {name}: {_text(value)}")
    if len(parts) > PARTS_SHOWN:
        say(f"    and {len(parts) - PARTS_SHOWN:,} more: give --json")


def _text(value: Value) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@cache.command("drop")
@with_context
def drop(
    context: CommandContext,
    case: OfCase = "",
    flow: OfFlow = "",
    name: OfName = "",
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="Only results that were neither made nor used for so long, such as 30d.",
            show_default=False,
        ),
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="All results.")] = False,
) -> None:
    """Forget results, so that they are not used again; cases and files stay."""
    unused_ms = duration_ms(older_than) if older_than else 0
    if unused_ms is None:
        raise InvalidRequest(f"--older-than is a duration such as {DURATION_EXAMPLES}, not {older_than!r}")
    dropped = context.run(
        lambda client: client.drop_results(case=case, flow=flow, name=name, unused_ms=unused_ms, every=every),
        changes=not case,
    )
    print_answer(context.json, dropped, f"{count_text(dropped, 'result')} dropped")
