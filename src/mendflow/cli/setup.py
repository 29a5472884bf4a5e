"""Small commands: token, completion."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.main import COMPLETE_VARIABLE, command
from mendflow.cli.options import Json
from mendflow.cli.printing import print_json, say
from mendflow.server.access import new_token

app = typer.Typer()


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command("token")
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the token's owner.")],
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="admin, user, pilot, engine, reader, metrics, or a role of user tasks; default: user.",
            show_default=False,
        ),
    ] = None,
    append: Annotated[
        str, typer.Option("--append", metavar="FILE", help="Add the line to this token file.", show_default=False)
    ] = "",
    json: Json = False,
) -> None:
    """Create a token, and the line of the token file for it."""
    secret, line = new_token(name, role or ["user"])
    if append:
        _append(Path(append), line)
    if json:
        print_json({"name": name, "token": secret, "line": line})
        return
    say("The token, shown only now; give it by MENDFLOW_TOKEN or --token-file:", err=True)
    sys.stdout.write(f"{secret}\n")
    say(
        f"The server knows it by its line in {append}." if append else "The line for the server's token file:", err=True
    )
    if not append:
        sys.stdout.write(f"{line}\n")


@app.command("completion")
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the completion script of a shell."""
    os.environ[COMPLETE_VARIABLE] = f"source_{shell.value}"
    command()(args=[], prog_name="mendflow", complete_var=COMPLETE_VARIABLE)


def _append(path: Path, line: str) -> None:
    """Only the owner may read the file, although it has only hashes of tokens."""
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a", encoding="utf-8") as out:
        out.write(f"{line}\n")
