"""The work of people: list it, claim it, complete it, reject it, give it back."""

from collections.abc import Awaitable, Callable
from typing import Annotated, get_args

import typer
from rich.text import Text

from mendflow.cli.inputs import json_or_text
from mendflow.cli.link import connected, waited
from mendflow.cli.options import Data, Json, Server, Target, TokenFile, completed, one_of
from mendflow.cli.printing import print_json, print_table, say, state_text
from mendflow.client import Client
from mendflow.core.model.problems import Invalid
from mendflow.core.model.values import Value
from mendflow.core.model.views import TaskState, TaskView
from mendflow.report.words import plain, short_time_text

app = typer.Typer()
tasks_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(tasks_app, name="tasks", help="List and do the work of people.")

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="A task's id, CASE/NUMBER.")]
Role = Annotated[str, typer.Option("--role", metavar="ROLE", help="Only for this role.", show_default=False)]
State = Annotated[
    str,
    typer.Option(
        "--state",
        metavar="STATE",
        help="Only in this state; else offered and claimed.",
        show_default=False,
        callback=one_of("--state", get_args(TaskState)),
        autocompletion=completed(get_args(TaskState)),
    ),
]
OfCase = Annotated[str, typer.Option("--case", metavar="CASE", help="Only of this case.", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many at most.")]
Comment = Annotated[
    str, typer.Option("--comment", "-m", metavar="TEXT", help="A word on it, kept with the task.", show_default=False)
]


@tasks_app.callback()
def tasks(
    ctx: typer.Context,
    role: Role = "",
    state: State = "",
    case: OfCase = "",
    limit: Limit = 100,
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """List and do the work of people."""
    target = Target(server, token_file, data)
    if ctx.invoked_subcommand is None:
        _list(target, role=role, state=state, case=case, limit=limit, json=json)
    ctx.obj = target


@tasks_app.command("list")
def list_(
    ctx: typer.Context,
    role: Role = "",
    state: State = "",
    case: OfCase = "",
    limit: Limit = 100,
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """List the tasks that wait for somebody."""
    _list(_target(ctx, server, token_file, data), role=role, state=state, case=case, limit=limit, json=json)


def _target(ctx: typer.Context, server: str, token_file: str, data: str) -> Target:
    """What was said after the command's name, else what was said before it."""
    before: Target = ctx.obj
    return Target(server or before.server, token_file or before.token_file, data or before.data)


def _list(target: Target, *, role: str, state: str, case: str, limit: int, json: bool) -> None:
    async def read() -> list[TaskView]:
        async with connected(target) as client:
            found = await client.tasks(role=role, state=state, case=case, limit=limit)
            return [task for task in found if state or task.state in ("offered", "claimed")]

    views = waited(read())
    if json:
        print_json(views)
    elif not views:
        say("There is nothing to do.")
    else:
        print_table(("task", "role", "state", "deadline", "title"), map(_row, views))


@tasks_app.command("show")
def show(
    ctx: typer.Context,
    task: TaskArgument,
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """Show one task with its data and the outputs that it wants."""
    view = _asked(_target(ctx, server, token_file, data), lambda client: client.task(task))
    if json:
        print_json(view)
        return
    say(Text.assemble((view.id, "bold"), " ", state_text(view.state), f" for {view.role}"))
    say(plain(f"{view.title}\n{view.description}".strip()))
    if view.data is not None:
        print_json(view.data)
    for name, description in view.fields.items():
        say(f"  wants {name}: {plain(description)}")


@tasks_app.command("claim")
def claim(
    ctx: typer.Context,
    task: TaskArgument,
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """Take a task, so that nobody else does it."""
    _do(_target(ctx, server, token_file, data), lambda client: client.claim(task), json=json)


@tasks_app.command("release")
def release(
    ctx: typer.Context,
    task: TaskArgument,
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """Give a claimed task back."""
    _do(_target(ctx, server, token_file, data), lambda client: client.release(task), json=json)


@tasks_app.command("complete")
def complete(
    ctx: typer.Context,
    task: TaskArgument,
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="K=V", help="An output; JSON, text, or @FILE.", show_default=False),
    ] = None,
    comment: Comment = "",
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """Say that a task is done, with its outputs."""
    outputs = _outputs(output or [])
    _do(
        _target(ctx, server, token_file, data),
        lambda client: client.complete(task, outputs, comment=comment),
        json=json,
    )


@tasks_app.command("reject")
def reject(
    ctx: typer.Context,
    task: TaskArgument,
    comment: Comment = "",
    json: Json = False,
    server: Server = "",
    token_file: TokenFile = "",
    data: Data = "",
) -> None:
    """Say no; the flow then has a fault named rejected."""
    _do(_target(ctx, server, token_file, data), lambda client: client.reject(task, comment=comment), json=json)


def _outputs(pairs: list[str]) -> dict[str, Value]:
    outputs = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise Invalid(f"--output {pair!r} has no value; write --output NAME=VALUE")
        outputs[name] = json_or_text(text)
    return outputs


def _asked(target: Target, ask: Callable[[Client], Awaitable[TaskView]]) -> TaskView:
    async def answer() -> TaskView:
        async with connected(target) as client:
            return await ask(client)

    return waited(answer())


def _do(target: Target, act: Callable[[Client], Awaitable[TaskView]], *, json: bool) -> None:
    view = _asked(target, act)
    if json:
        print_json(view)
    else:
        by = f" by {view.claimed_by}" if view.state == "claimed" and view.claimed_by else ""
        say(f"{view.id} {view.state}{by}")


def _row(view: TaskView) -> tuple[str | Text, ...]:
    state = f"claimed by {view.claimed_by}" if view.state == "claimed" else view.state
    return view.id, view.role, state_text(state), short_time_text(view.deadline), view.title
