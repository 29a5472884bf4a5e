"""Commands about projects: list, show, set weights and quotas, remove what is set, the half-life of the fair share."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.cli.quota_options import NONE, number_given, size_given
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.members import MemberRequest
from mendflow.core.model.principals import PROJECT_ROLES
from mendflow.core.model.projects import FairShareSettings, ProjectSettings, ProjectView, Quotas
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.pages.formatting import duration_text, size_text, time_text

app = typer.Typer()
projects = typer.Typer(invoke_without_command=True)
app.add_typer(projects, name="projects")

NameArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="A project's name.")]

MemberArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of their tokens, or the issuer's.")]


def _quota(name: str, help: str) -> Any:
    return typer.Option(name, metavar="N", help=f"{help}; `none` for no bound.", show_default=False)


@projects.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the projects: weights, shares, quotas and what is used; set or remove what holds for one."""
    if not context.inner:
        _list(context)


@projects.command("list")
@with_context
def list_projects(context: CommandContext) -> None:
    """List the projects: the weight and share of each, what it has had, and its quotas."""
    _list(context)


def _list(context: CommandContext) -> None:
    views = context.run(lambda client: client.projects())
    if context.json:
        print_json(views)
        return
    if not views:
        say("There are no projects but `default`; mendflow admin projects set PROJECT --weight 2 sets one's weight.")
        return
    print_table(("project", "weight", "share", "has had", "CPUs", "quotas"), [_row(view) for view in views], fold=5)


def _row(view: ProjectView) -> tuple[str, ...]:
    quotas = ", ".join(f"{name} {used} of {bound}" for name, used, bound in _quotas(view))
    share, had = ("" if each is None else f"{each:.1%}" for each in (view.share, view.used_share))
    return (view.name, f"{view.settings.weight:g}", share, had, f"{view.used.cpus:g}", quotas)


def _quotas(view: ProjectView) -> list[tuple[str, str, str]]:
    """The name of each quota that is set, what is used of it, and the quota."""
    quotas, used = view.settings.quotas, view.used
    rows: list[tuple[str, object, object, Callable[[Any], str]]] = [
        ("cases", used.cases, quotas.cases, str),
        ("waiting jobs", used.waiting_jobs, quotas.waiting_jobs, str),
        ("running jobs", used.running_jobs, quotas.running_jobs, str),
        ("CPUs", used.cpus, quotas.cpus, lambda each: f"{each:g}"),
        ("memory", used.memory_bytes, quotas.memory_bytes, size_text),
        ("stored files", used.stored_bytes, quotas.stored_bytes, size_text),
    ]
    found = [(name, text(amount or 0), text(bound)) for name, amount, bound, text in rows if bound is not None]
    if quotas.requests_per_s is not None:
        found.append(("requests a second", "up to", f"{quotas.requests_per_s:g}"))
    return found


@projects.command("show")
@with_context
def show(context: CommandContext, name: NameArgument) -> None:
    """Show a project: its weight, its quotas, what it uses, and what its users have used."""
    view = context.run(lambda client: client.project(name))
    if context.json:
        print_json(view)
        return
    by = f" (set by {view.set_by})" if view.set_by else ""
    say(f"project {name}: weight {view.settings.weight:g}{by}; {view.used.cpus:g} CPUs are in use,")
    say(f"{duration_text(view.used.cpu_s * 1000)} of CPU time count in the fair share")
    if quotas := _quotas(view):
        print_table(("quota", "used", "bound"), quotas)
    if view.users:
        how = "share by weight" if view.settings.share_users else "do not share among themselves"
        say(f"Its users {how}:")
        print_table(
            ("user", "weight", "CPU time", "CPUs"),
            [
                (each.user, f"{each.weight:g}", duration_text(each.cpu_s * 1000), f"{each.cpus:g}")
                for each in view.users
            ],
        )


@projects.command("set")
@with_context
def set_project(
    context: CommandContext,
    name: NameArgument,
    weight: Annotated[
        float | None,
        typer.Option(
            "--weight", metavar="N", help="Its part of the fair share, relative to others.", show_default=False
        ),
    ] = None,
    share_users: Annotated[
        bool | None,
        typer.Option(
            "--share-users/--no-share-users", help="Whether its users share among themselves too.", show_default=False
        ),
    ] = None,
    user_weight: Annotated[
        list[str] | None,
        typer.Option("--user-weight", metavar="USER=N", help="The weight of a user; repeat it.", show_default=False),
    ] = None,
    cases: Annotated[str, _quota("--cases", "How many cases may live at once")] = "",
    waiting_jobs: Annotated[str, _quota("--waiting-jobs", "How many jobs may be in the queue")] = "",
    running_jobs: Annotated[str, _quota("--running-jobs", "How many jobs may run at once")] = "",
    cpus: Annotated[str, _quota("--cpus", "How many CPUs its running jobs may ask for")] = "",
    memory: Annotated[str, _quota("--memory", "How much memory they may ask for, such as 64GB")] = "",
    stored_bytes: Annotated[str, _quota("--stored-bytes", "How much its stored files may take, such as 1TB")] = "",
    requests: Annotated[str, _quota("--requests-per-second", "How many requests its members may send")] = "",
) -> None:
    """Set the weight and the quotas of a project; what is not given stays as it is."""
    given = {
        "cases": number_given("--cases", cases, int),
        "waiting_jobs": number_given("--waiting-jobs", waiting_jobs, int),
        "running_jobs": number_given("--running-jobs", running_jobs, int),
        "cpus": number_given("--cpus", cpus, float),
        "memory_bytes": size_given("--memory", memory),
        "stored_bytes": size_given("--stored-bytes", stored_bytes),
        "requests_per_s": number_given("--requests-per-second", requests, float),
    }
    weights = dict(_user_weight(each) for each in user_weight or ())

    async def change(client: Client) -> ProjectView:
        before = (await client.project(name)).settings
        settings = ProjectSettings(
            weight=before.weight if weight is None else weight,
            share_users=before.share_users if share_users is None else share_users,
            user_weights={**before.user_weights, **weights},
            quotas=_changed(before.quotas, given),
        )
        return await client.set_project(name, settings)

    view = context.run(change, changes=True, begin=True)
    quotas = ", ".join(f"{quota} {bound}" for quota, _, bound in _quotas(view)) or "none"
    print_answer(context.json, view, f"project {name} has the weight {view.settings.weight:g}; quotas: {quotas}")


def _changed(before: Quotas, given: dict[str, Any]) -> Quotas:
    found = {name: None if value == NONE else value for name, value in given.items() if value is not None}
    return replace(before, **found)


def _user_weight(text: str) -> tuple[str, float]:
    user, _, weight = text.rpartition("=")
    try:
        if user:
            return user, float(weight)
    except ValueError:
        pass
    raise InvalidRequest(f"--user-weight {text!r:.50}: write USER=WEIGHT, such as ada=2")


@projects.command("remove")
@with_context
def remove(context: CommandContext, name: NameArgument) -> None:
    """Remove what is set for a project: it has no quotas then, and the weight 1; what it owns stays."""
    view = context.run(lambda client: client.remove_project_settings(name), changes=True)
    print_answer(context.json, view, f"nothing is set for project {name} any more")


@projects.command("members")
@with_context
def members(context: CommandContext, name: NameArgument) -> None:
    """List who is what in a project: its members, and the tokens that name it."""
    views = context.run(lambda client: client.members(name))
    if context.json:
        print_json(views)
        return
    if not views:
        say(f"Nobody is a member of project {name}: mendflow admin projects add-member {name} NAME --role ROLE")
        return
    rows = [(each.name, each.role, each.through, each.set_by, time_text(each.set_at)) for each in views]
    print_table(("name", "role", "through", "set by", "set at"), rows)


@projects.command("add-member")
@with_context
def add_member(
    context: CommandContext,
    name: NameArgument,
    member: MemberArgument,
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help=f"What they are there: {', '.join(PROJECT_ROLES)}.")
    ],
) -> None:
    """Make somebody a member of a project, or change what they are there."""
    known = next((each for each in PROJECT_ROLES if each == role), None)
    if known is None:
        raise InvalidRequest(f"--role {role!r:.50}: a role in a project is one of {', '.join(PROJECT_ROLES)}")
    wish = MemberRequest(role=known)
    view = context.run(lambda client: client.put_member(name, member, wish), changes=True, begin=True)
    print_answer(context.json, view, f"{member} is {view.role} of project {name}")


@projects.command("remove-member")
@with_context
def remove_member(context: CommandContext, name: NameArgument, member: MemberArgument) -> None:
    """End somebody's membership of a project. What their token says stays."""
    view = context.run(lambda client: client.remove_member(name, member), changes=True)
    print_answer(context.json, view, f"{member} is no member of project {name} any more")


@projects.command("half-life")
@with_context
def half_life(
    context: CommandContext,
    time: Annotated[
        str, typer.Argument(metavar="TIME", help="After how long what was used counts half, such as 7d.")
    ] = "",
) -> None:
    """Show after how long what was used counts half in the fair share, or set it."""
    if time:
        found = duration_ms(time)
        if not found:
            raise InvalidRequest(f"{time!r:.50} is no time; write one like {DURATION_EXAMPLES}")
        wanted = FairShareSettings(half_life_ms=found)
        settings = context.run(lambda client: client.set_fair_share(wanted), changes=True, begin=True)
    else:
        settings = context.run(lambda client: client.fair_share())
    print_answer(context.json, settings, f"what was used counts half after {duration_text(settings.half_life_ms)}")
