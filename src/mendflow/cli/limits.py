"""Commands about named limits: list, set, remove."""

from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.options import Project
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.core.model.named_limits import LimitCount, LimitView
from mendflow.pages.formatting import count_text

app = typer.Typer()
limits = typer.Typer(invoke_without_command=True)
app.add_typer(limits, name="limits")

JOBS_SHOWN = 5
NameArgument = Annotated[str, typer.Argument(metavar="LIMIT", help="A limit's name, as jobs name it.")]


@limits.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the named limits, and the jobs that use them; set or remove one."""
    if not context.inner:
        _list(context)


@limits.command("list")
@with_context
def list_limits(context: CommandContext) -> None:
    """List the named limits: how much there is of each, how much is in use, and how many jobs wait."""
    _list(context)


def _list(context: CommandContext) -> None:
    views = context.run(lambda client: client.limits())
    if context.json:
        print_json(views)
        return
    if not views:
        say("There are no named limits; `limits: {licence-x: 1}` at a job names one, mendflow limits set sets it.")
        return
    print_table(("limit", "count", "in use", "jobs waiting", "used by"), [_row(view) for view in views], fold=4)


def _row(view: LimitView) -> tuple[str, ...]:
    shown = [each.job + (f" ({each.amount})" if each.amount > 1 else "") for each in view.jobs[:JOBS_SHOWN]]
    more = [f"and {len(view.jobs) - JOBS_SHOWN} more"] if len(view.jobs) > JOBS_SHOWN else []
    count = "not set" if view.count is None else str(view.count)
    return (view.name, count, str(view.used), str(view.waiting), ", ".join([*shown, *more]))


@limits.command("set")
@with_context
def set_limit(
    context: CommandContext,
    name: NameArgument,
    count: Annotated[int, typer.Argument(metavar="COUNT", help="How much of it all running jobs may use together.")],
    project: Project = "",
) -> None:
    """Set how much there is of a limit; it holds at once, and stops no job that runs."""
    view = context.run(
        lambda client: client.set_limit(name, LimitCount(count), project=project), changes=True, begin=True
    )
    over = f"; {view.used} are in use, and nothing starts until enough was given back" if view.used > count else ""
    print_answer(context.json, view, f"limit {name} is {count}{over}")


@limits.command("remove")
@with_context
def remove(context: CommandContext, name: NameArgument) -> None:
    """Remove a limit; jobs that use it and run go on, and those that wait, wait until it is set again."""
    view = context.run(lambda client: client.remove_limit(name), changes=True)
    waits = f"; {count_text(view.waiting, 'job')} that need it wait until it is set again" if view.waiting else ""
    print_answer(context.json, view, f"limit {name} is removed{waits}")
