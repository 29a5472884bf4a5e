"""Commands about tokens: list, create, revoke those in the store; make a line for a token file."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.options import Json
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.core.model.access_tokens import TokenRequest, TokenView, project_role
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.pages.formatting import time_text
from mendflow.server.access import new_token

app = typer.Typer()
tokens = typer.Typer(invoke_without_command=True)
app.add_typer(tokens, name="tokens")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Who has the token: a person, a pilot, a program.")]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="admin, user, pilot, engine, reader, metrics, or a role of user tasks; default: user.",
        show_default=False,
    ),
]


@tokens.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the tokens in the store, never the tokens themselves; create or revoke one."""
    if not context.inner:
        _list(context)


@tokens.command("list")
@with_context
def list_tokens(context: CommandContext) -> None:
    """List the tokens in the store: what they may do, who made them, until when they hold, when they were used."""
    _list(context)


def _list(context: CommandContext) -> None:
    views = context.run(lambda client: client.tokens())
    if context.json:
        print_json(views)
        return
    if not views:
        say("There are no tokens in the store; mendflow admin tokens create NAME makes one.")
        return
    print_table(
        ("id", "name", "roles", "projects", "made by", "made at", "expires", "last used"),
        [_row(view) for view in views],
        fold=5,
    )


def _row(view: TokenView) -> tuple[str, ...]:
    projects = ", ".join(f"{project}:{role}" for project, role in view.projects.items())
    expires = time_text(view.expires_at) if view.expires_at else "never"
    return (
        view.id,
        view.name,
        ", ".join(view.roles),
        projects,
        view.made_by,
        time_text(view.made_at),
        f"expired {expires}" if view.expired else expires,
        time_text(view.used_at) if view.used_at else "never",
    )


@tokens.command("create")
@with_context
def create(
    context: CommandContext,
    name: NameArgument,
    role: Roles = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            "--project",
            metavar="PROJECT:ROLE",
            help="What it is in a project: viewer, operator, author or admin; repeat it for the next.",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str,
        typer.Option("--expires", metavar="TIME", help="How long it holds, such as 30d; default: until it is revoked."),
    ] = "",
) -> None:
    """Create a token in the store; it is shown once, now."""
    request = TokenRequest(
        name=name,
        roles=role or [],
        projects=dict(project_role(each) for each in project or ()),
        expires_ms=_expires_ms(expires),
    )
    made = context.run(lambda client: client.create_token(request), changes=True, begin=True)
    if context.json:
        print_json(made)
        return
    until = f"until {time_text(made.view.expires_at)}" if made.view.expires_at else "until it is revoked"
    say(f"token {made.view.id} of {name} holds {until}", err=True)
    say("The token, shown only now; give it by MENDFLOW_TOKEN or --token-file:", err=True)
    sys.stdout.write(f"{made.token}\n")


def _expires_ms(text: str) -> int:
    if not text:
        return 0
    found = duration_ms(text)
    if not found:
        raise InvalidRequest(f"--expires {text!r} is no time; write one like {DURATION_EXAMPLES}")
    return found


@tokens.command("revoke")
@with_context
def revoke(
    context: CommandContext,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The id of a token, or the name: then all of it.")],
) -> None:
    """Revoke a token by its id, or all tokens of a name; they are refused from now on."""
    revoked = context.run(lambda client: client.revoke_token(token), changes=True)
    told = "\n".join(f"token {each.id} of {each.name} is revoked" for each in revoked)
    print_answer(context.json, revoked, told)


@tokens.command("line")
def line(
    name: NameArgument,
    role: Roles = None,
    append: Annotated[
        str, typer.Option("--append", metavar="FILE", help="Add the line to this token file.", show_default=False)
    ] = "",
    json: Json = False,
) -> None:
    """Make a token and the line of a token file for it, for the first administrator; no server is asked."""
    secret, made = new_token(name, role or ["user"])
    if append:
        _append(Path(append), made)
    if json:
        print_json({"name": name, "token": secret, "line": made})
        return
    say("The token, shown only now; give it by MENDFLOW_TOKEN or --token-file:", err=True)
    sys.stdout.write(f"{secret}\n")
    say(
        f"The server knows it by its line in {append}." if append else "The line for the server's token file:", err=True
    )
    if not append:
        sys.stdout.write(f"{made}\n")


def _append(path: Path, line: str) -> None:
    """Only the owner may read the file, although it has only hashes of tokens."""
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a", encoding="utf-8") as out:
        out.write(f"{line}\n")
