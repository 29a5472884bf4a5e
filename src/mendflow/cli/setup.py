"""Small commands: completion."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from mendflow.cli.main import COMPLETE_VARIABLE, command

app = typer.Typer()


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command("completion")
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the completion script of a shell."""
    os.environ[COMPLETE_VARIABLE] = f"source_{shell.value}"
    command()(args=[], prog_name="mendflow", complete_var=COMPLETE_VARIABLE)
