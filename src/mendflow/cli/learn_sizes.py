"""`mendflow learn sizes`: what was learned of the memory and the time that jobs need."""

import sys
from typing import Annotated

import msgspec
import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.list_options import Limit
from mendflow.cli.printing import print_json, print_table, say
from mendflow.core.learning.sizes_replay import ReplayLine, SizeReplay
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.size_views import SizeView
from mendflow.pages.formatting import duration_text, size_text

app = typer.Typer()


@app.command("sizes")
@with_context
def sizes(
    context: CommandContext,
    flow: Annotated[
        str, typer.Option("--flow", metavar="FLOW", help="Only jobs of this flow's cases.", show_default=False)
    ] = "",
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Only jobs of this name.", show_default=False)
    ] = "",
    limit: Limit = 1000,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Size the jobs of a trace that another program tells, as lines of JSON."),
    ] = False,
) -> None:
    """List what jobs asked for and used, and what they would ask for now."""
    if replay:
        answer_replay()
        return
    found = context.run(lambda client: client.sizes(flow=flow, name=name, limit=limit))
    if context.json:
        print_json(found)
    elif not found:
        say("Nothing is known of the sizes of jobs yet; it is learned from jobs that succeed.")
    else:
        heads = ("flow", "job", "jobs", "memory asked", "used", "would ask", "time asked", "used", "would ask", "saved")
        print_table(heads, [_row(each) for each in found], fold=1)


def _row(view: SizeView) -> tuple[str, ...]:
    memory = (view.memory_asked_bytes, view.memory_used_bytes, view.memory_next_bytes)
    time = (view.wall_asked_ms, view.wall_used_ms, view.wall_next_ms)
    return (
        view.flow,
        view.name,
        f"{view.jobs:,}",
        *(size_text(each) if each else "-" for each in memory),
        *(duration_text(each) if each else "-" for each in time),
        f"{view.saved_gb_hours:.3g} GBh" if view.saved_gb_hours else "-",
    )


def answer_replay() -> None:
    """Answer every question on standard input until that ends."""
    replayed, decode = SizeReplay(), msgspec.json.Decoder(ReplayLine).decode
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            told = decode(line)
        except msgspec.DecodeError as error:
            raise InvalidRequest(
                f'line {number} of standard input is not understood: {error}; give {{"ask": {{...}}}} or '
                '{"over": {...}}'
            ) from error
        if told.over is not None:
            replayed.over(told.over)
        if told.ask is not None:
            sys.stdout.write(f'{{"bytes": {replayed.ask(told.ask)}}}\n')
            sys.stdout.flush()
