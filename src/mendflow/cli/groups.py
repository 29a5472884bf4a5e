"""Groups of commands whose members live in several modules, so that the list of commands stays short."""

from collections.abc import Iterable

import typer


def grouped(name: str, help: str, parts: Iterable[tuple[typer.Typer, tuple[str, ...]]]) -> typer.Typer:
    """An app with one group, `name`, that has the named commands and groups of other apps."""
    app, group = typer.Typer(), typer.Typer(no_args_is_help=True, help=help)
    take(group, parts)
    app.add_typer(group, name=name)
    return app


def take(group: typer.Typer, parts: Iterable[tuple[typer.Typer, tuple[str, ...]]]) -> None:
    for part, names in parts:
        group.registered_commands += [each for each in part.registered_commands if each.name in names]
        group.registered_groups += [each for each in part.registered_groups if each.name in names]
