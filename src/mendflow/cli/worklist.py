"""Commands for user tasks: list, claim, complete, reject, release; and for what administrators are asked to handle."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final, get_args

import msgspec
import typer
from rich.text import Text

from mendflow.cli.administration_tasks import list_administration_tasks, show_administration_task
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.held_cases import show_held
from mendflow.cli.inputs import json_or_text
from mendflow.cli.list_options import Limit
from mendflow.cli.option_groups import options_as
from mendflow.cli.options import complete_from_server, complete_words, one_of
from mendflow.cli.printing import print_json, print_table, say, state_text
from mendflow.cli.task_reminders import task_id
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.repair_views import AdministrationQuery, AdministrationTaskView, DecisionQuery, DecisionView
from mendflow.core.model.values import Value
from mendflow.core.model.views import UserTaskState, UserTaskView
from mendflow.pages.formatting import plain_text, short_time_text

app = typer.Typer()
tasks_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(tasks_app, name="worklist", help="List the user tasks that wait; claim, complete or reject one.")

TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="A user task's id, CASE/NUMBER, or CASE:ITEM; CASE may be `last`.",
        autocompletion=complete_from_server("worklist"),
    ),
]
Role = Annotated[str, typer.Option("--role", metavar="ROLE", help="Only for this role.", show_default=False)]
State = Annotated[
    str,
    typer.Option(
        "--state",
        metavar="STATE",
        help="Only in this state; default: offered and claimed.",
        show_default=False,
        callback=one_of("--state", get_args(UserTaskState)),
        autocompletion=complete_words(get_args(UserTaskState)),
    ),
]
OfCase = Annotated[str, typer.Option("--case", metavar="CASE", help="Only of this case.", show_default=False)]
Held = Annotated[
    bool, typer.Option("--held", help="Only what failed or was raised, no rule knows, and waits for a person.")
]
Comment = Annotated[
    str,
    typer.Option("--comment", "-m", metavar="TEXT", help="A comment, stored with the user task.", show_default=False),
]


class WorklistOptions(msgspec.Struct, frozen=True):
    """Which of them are listed."""

    role: str = ""
    state: str = ""
    case: str = ""
    held: bool = False
    limit: int = 100


USUAL_WORKLIST: Final = WorklistOptions()
with_worklist_options = options_as(
    "list_options",
    {
        "role": (Role, ""),
        "state": (State, ""),
        "case": (OfCase, ""),
        "held": (Held, False),
        "limit": (Limit, USUAL_WORKLIST.limit),
    },
    WorklistOptions,
)
"""The command, with these options in place of its parameter `list_options`."""


@tasks_app.callback()
@with_context
@with_worklist_options
def worklist(
    context: CommandContext,
    list_options: WorklistOptions = USUAL_WORKLIST,
) -> None:
    """List the user tasks that wait; claim, complete or reject one."""
    if not context.inner:
        _list(context, list_options)


@tasks_app.command("list")
@with_context
@with_worklist_options
def list_(
    context: CommandContext,
    list_options: WorklistOptions = USUAL_WORKLIST,
) -> None:
    """List the user tasks that wait for somebody."""
    _list(context, list_options)


def _list(context: CommandContext, list_options: WorklistOptions) -> None:
    """User tasks, and what failed or was raised and waits for a person; the latter has no role."""
    has_role = bool(list_options.role or list_options.state)
    if list_options.held and has_role:
        raise InvalidRequest("--held lists what has no role and no state; leave --role and --state out")

    async def ask(client: Client) -> tuple[list[UserTaskView], list[DecisionView]]:
        case, limit = list_options.case, list_options.limit
        if list_options.held:
            tasks: list[UserTaskView] = []
        else:
            tasks = await client.worklist(role=list_options.role, state=list_options.state, case=case, limit=limit)
        waiting = DecisionQuery(case=case, state="waiting", limit=limit)
        return tasks, [] if has_role else await client.decisions(waiting)

    found, waiting = context.run(ask)
    views = [task for task in found if list_options.state or task.state in ("offered", "claimed")]
    if context.json:
        print_json(waiting if list_options.held else views)
        return
    if views:
        print_table(("user task", "role", "state", "deadline", "title"), map(_row, views))
    if waiting:
        show_held(waiting)
    if not views and not waiting:
        say("Nothing is held for a person." if list_options.held else "No user task waits.")


@tasks_app.command("administration")
@with_context
def administration(
    context: CommandContext,
    task: Annotated[
        str,
        typer.Argument(
            metavar="[TASK]", help="One administration task, by its id; without it, list them.", show_default=False
        ),
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Those that were handled, too.")] = False,
    case: OfCase = "",
    limit: Limit = 100,
) -> None:
    """List what people were asked to handle because no rule did: who asks, the scenario, and what came of it."""
    if task:
        view = context.run(lambda client: client.administration_task(task))
        print_json(view) if context.json else show_administration_task(view)
        return

    async def ask(client: Client) -> list[AdministrationTaskView]:
        states = ("",) if every else ("open", "running")
        queries = [AdministrationQuery(state=state, case=case, limit=limit) for state in states]
        return [view for query in queries for view in await client.administration_tasks(query)]

    views = context.run(ask)
    if context.json:
        print_json(views)
    else:
        list_administration_tasks(views)


@tasks_app.command("show")
@with_context
def show(
    context: CommandContext,
    task: TaskArgument,
) -> None:
    """Show one user task: its data, and the outputs that it asks for."""
    view = context.run(lambda client: _named(client, task, client.user_task))
    if context.json:
        print_json(view)
        return
    say(Text.assemble((view.id, "bold"), " ", state_text(view.state), f" for {view.role}"))
    say(plain_text(f"{_title(view)}\n{view.description}".strip()))
    if view.data is not None:
        print_json(view.data)
    for name, description in view.fields.items():
        say(f"  wants {name}: {plain_text(description)}")


@tasks_app.command("claim")
@with_context
def claim(
    context: CommandContext,
    task: TaskArgument,
) -> None:
    """Claim a user task, so that nobody else does it."""
    _do(context, task, lambda client, id: client.claim(id))


@tasks_app.command("release")
@with_context
def release(
    context: CommandContext,
    task: TaskArgument,
) -> None:
    """Give a claimed user task back."""
    _do(context, task, lambda client, id: client.release(id))


@tasks_app.command("complete")
@with_context
def complete(
    context: CommandContext,
    task: TaskArgument,
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="K=V", help="An output; JSON, text, or @FILE.", show_default=False),
    ] = None,
    comment: Comment = "",
) -> None:
    """Complete a user task, with its outputs."""
    outputs = _outputs(output or [])
    _do(context, task, lambda client, id: client.complete(id, outputs, comment=comment))


@tasks_app.command("reject")
@with_context
def reject(
    context: CommandContext,
    task: TaskArgument,
    comment: Comment = "",
) -> None:
    """Reject a user task; the flow gets the fault `rejected`."""
    _do(context, task, lambda client, id: client.reject(id, comment=comment))


def _outputs(pairs: list[str]) -> dict[str, Value]:
    outputs = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InvalidRequest(f"--output {pair!r} has no value; write --output NAME=VALUE")
        outputs[name] = json_or_text(text)
    return outputs


async def _named(client: Client, task: str, act: Callable[[str], Awaitable[UserTaskView]]) -> UserTaskView:
    return await act(await task_id(client, task))


def _do(context: CommandContext, task: str, act: Callable[[Client, str], Awaitable[UserTaskView]]) -> None:
    view = context.run(lambda client: _named(client, task, lambda id: act(client, id)))
    if context.json:
        print_json(view)
    else:
        by = f" by {view.claimed_by}" if view.state == "claimed" and view.claimed_by else ""
        say(f"{view.id} {view.state}{by}")


def _row(view: UserTaskView) -> tuple[str | Text, ...]:
    state = f"claimed by {view.claimed_by}" if view.state == "claimed" else view.state
    return view.id, view.role, state_text(state), short_time_text(view.deadline), _title(view)


def _title(view: UserTaskView) -> str:
    """The title, with the element of a loop that the task is for, if it does not name that itself."""
    return view.title if not view.element or view.element in view.title else f"{view.title} ({view.element})"
