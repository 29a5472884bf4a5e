"""Commands about secrets: list, set, remove. A value is never an argument: other users of a machine can read those."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.options import Project
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.secrets import MASKED_CHARS_MIN, SecretValue, SecretView
from mendflow.pages.formatting import time_text

app = typer.Typer()
secrets = typer.Typer(invoke_without_command=True)
app.add_typer(secrets, name="secrets")

NameArgument = Annotated[str, typer.Argument(metavar="SECRET", help="A secret's name, as jobs name it.")]


@secrets.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the secrets that jobs can use, not their values; set or remove one."""
    if not context.inner:
        _list(context)


@secrets.command("list")
@with_context
def list_secrets(context: CommandContext) -> None:
    """List the secrets: who set them, when, and which deployed flows use them. No command shows a value."""
    _list(context)


def _list(context: CommandContext) -> None:
    views = context.run(lambda client: client.secrets())
    if context.json:
        print_json(views)
        return
    if not views:
        say("There are no secrets; `secrets: [api-token]` at a job names one, mendflow secrets set sets it.")
        return
    print_table(("secret", "set by", "set at", "from", "used by", "problem"), [_row(view) for view in views], fold=5)


def _row(view: SecretView) -> tuple[str, ...]:
    at = time_text(view.set_at) if view.set_at else ""
    return (view.name, view.set_by, at, view.source or "the store", ", ".join(view.used_by), view.problem)


@secrets.command("set")
@with_context
def set_secret(
    context: CommandContext,
    name: NameArgument,
    file: Annotated[
        str,
        typer.Option(
            "--file", metavar="FILE", help="Read the value from this file, as it is; default: ask for it, or stdin."
        ),
    ] = "",
    project: Project = "",
) -> None:
    """Set a secret; its value is read from a prompt, standard input or a file, never from the command line."""
    value = _value(name, file)
    wish = SecretValue(value)
    view = context.run(lambda client: client.set_secret(name, wish, project=project), changes=True, begin=True)
    told = f"secret {name} is set; attempts that begin from now on get it"
    if len(value.strip()) < MASKED_CHARS_MIN:
        told += f"\nit has less than {MASKED_CHARS_MIN} characters: it is masked in the logs of jobs that have it only"
    print_answer(context.json, view, told)


def _value(name: str, file: str) -> str:
    if file:
        try:
            return Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"{file} cannot be read as text: {error}") from None
    if sys.stdin.isatty():
        value: str = typer.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return value
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


@secrets.command("remove")
@with_context
def remove(context: CommandContext, name: NameArgument) -> None:
    """Remove a secret from the store; jobs that use it fail from now on."""
    view = context.run(lambda client: client.remove_secret(name), changes=True)
    users = f"; it is used by {', '.join(view.used_by)}" if view.used_by else ""
    print_answer(context.json, view, f"secret {name} is removed{users}")
