"""Groups of commands whose members are in several modules."""

from collections.abc import Iterable

import typer


def take(group: typer.Typer, parts: Iterable[tuple[typer.Typer, tuple[str, ...]]]) -> None:
    """Add the named commands and groups of other apps to a group."""
    for part, names in parts:
        group.registered_commands += [each for each in part.registered_commands if each.name in names]
        group.registered_groups += [each for each in part.registered_groups if each.name in names]
