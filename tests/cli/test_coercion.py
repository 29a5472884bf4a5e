"""Commands coerce only what needs it, by a public method of typer's parameters."""

import subprocess
import sys

import pytest
import typer

from mendflow.cli.coercion import skip_needless_coercion
from tests.patience import PATIENCE_S

PROGRAM = """
import sys
from typing import Annotated
import typer
from mendflow.cli.coercion import skip_needless_coercion

app = typer.Typer()

@app.command()
def show(name: str, size: int = 3, many: Annotated[list[str] | None, typer.Option()] = None) -> None:
    print(name, size, many)

command = skip_needless_coercion(typer.main.get_command(app))
command(args={args!r}, standalone_mode=False)
print("pydantic" in sys.modules)
"""


def show(*args: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(args=list(args))], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_texts_and_defaults_are_not_coerced() -> None:
    assert show("here") == ["here 3 None", "False"], (
        "typer coerces values in another way now, and every command loads its library for data models: see how"
        " typer.core.TyperOption.process_value and type_descriptor changed, and mend mendflow/cli/coercion.py"
    )


def test_everything_else_is_coerced_by_typer() -> None:
    assert show("here", "--size", "5", "--many", "a", "--many", "b")[0] == "here 5 ['a', 'b']"


@pytest.mark.parametrize(("words", "problem"), [([], "name"), (["here", "--size", "five"], "valid integer")])
def test_what_is_missing_or_of_another_type_is_refused(words: list[str], problem: str) -> None:
    app = typer.Typer()

    @app.command()
    def show(name: str, size: int = 3) -> None: ...

    command = skip_needless_coercion(typer.main.get_command(app))
    with pytest.raises(Exception, match=f"(?i){problem}"):
        command(args=words, standalone_mode=False)
