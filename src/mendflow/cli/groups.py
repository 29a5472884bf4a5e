"""Groups of commands whose members live in several modules."""

from collections.abc import Iterable

import typer


def take(group: typer.Typer, parts: Iterable[tuple[typer.Typer, tuple[str, ...]]]) -> None:
    """Give a group the named commands and groups of other apps."""
    for part, names in parts:
        group.registered_commands += [each for each in part.registered_commands if each.name in names]
        group.registered_groups += [each for each in part.registered_groups if each.name in names]
