"""The options that a command was given, as words that give them again."""

from collections.abc import Mapping

OptionValues = Mapping[str, str | bool | float | list[str] | None]


def words_of(given: OptionValues) -> list[str]:
    """The words of those options that were given."""
    words: list[str] = []
    for name, value in given.items():
        if isinstance(value, bool):
            words += [name] if value else []
        elif isinstance(value, float | int):
            words += [name, f"{value:g}"]
        else:
            for each in [value] if isinstance(value, str) else value or []:
                words += [name, each] if each else []
    return words
