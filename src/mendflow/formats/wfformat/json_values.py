"""Typed access to the values of a JSON document; wrong ones are recorded with their place.

Positions are looked up at the end, all at once: a document without problems pays nothing for them."""

import math
from typing import Any, Final

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.formats.wfformat.json_positions import JsonPath, path_text, positions_of

PROBLEMS_SHOWN: Final = 50


class JsonDocument:
    """The document as a whole, and what is wrong with it."""

    def __init__(self, text: str, file: str) -> None:
        self.problems: list[tuple[JsonPath, str, str]] = []
        self._text = text
        self._file = file

    def root(self, value: Any) -> "JsonValue":
        return JsonValue(self, (), value)

    def demand_none(self) -> None:
        """Raise BadFlow if anything is wrong."""
        if not self.problems:
            return
        listed_problems = self.problems[:PROBLEMS_SHOWN]
        places = positions_of(self._text, (path for path, _, _ in listed_problems))
        listed = [self._problem(path, places[path], message, meant) for path, message, meant in listed_problems]
        listed.sort(key=lambda problem: (problem.line, problem.column))
        if more := len(self.problems) - len(listed_problems):
            listed.append(Problem(file=self._file, message=f"and {more:,} more problems; mend these first"))
        raise BadFlow(problems=listed)

    def _problem(self, path: JsonPath, place: tuple[int, int], message: str, meant: str) -> Problem:
        where = f"{path_text(path)}: " if path else ""
        line, column = place
        return Problem(file=self._file, line=line, column=column, message=where + message, suggestion=meant)


class JsonValue:
    """One value and where it stands. What is asked of a part that is not there is answered with nothing."""

    __slots__ = ("_path", "parts", "value")

    def __init__(self, parts: JsonDocument, path: JsonPath, value: Any) -> None:
        self.parts = parts
        self.value = value
        self._path = path

    def problem(self, message: str, meant: str = "") -> None:
        self.parts.problems.append((self._path, message, meant))

    def at(self, key: str | int) -> "JsonValue":
        inside = self.value
        if isinstance(inside, dict):
            inside = inside.get(key)
        elif isinstance(inside, list) and isinstance(key, int) and key < len(inside):
            inside = inside[key]
        else:
            inside = None
        return JsonValue(self.parts, (*self._path, key), inside)

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def is_map(self, wanted: str) -> bool:
        if isinstance(self.value, dict):
            return True
        self.problem(f"{wanted}, not {describe_value(self.value)}")
        return False

    def items(self, key: str, *, needed: str = "") -> list["JsonValue"]:
        """The parts of a list; none if it is not there."""
        given = self.at(key)
        if isinstance(given.value, list):
            return [JsonValue(self.parts, (*given._path, index), each) for index, each in enumerate(given.value)]
        if given.value is not None:
            given.problem(f"a list is wanted here, not {describe_value(given.value)}")
        elif needed:
            self.problem(needed)
        return []

    def text(self, key: str, *, needed: str = "") -> str:
        given = self.at(key)
        if isinstance(given.value, str) and (given.value or not needed):
            return given.value
        if given.value is None or given.value == "":
            if needed:
                self.problem(f"`{key}` is missing; {needed}")
        else:
            given.problem(f"a text is wanted here, not {describe_value(given.value)}")
        return ""

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list, each once; empty ones say nothing."""
        found: dict[str, None] = {}
        for each in self.items(key):
            if isinstance(each.value, str):
                if each.value:
                    found[each.value] = None
            else:
                each.problem(f"an id is a text, not {describe_value(each.value)}")
        return tuple(found)

    def number(self, key: str, *, least: float, most: float) -> float:
        """The number that stands there; 0 if there is none."""
        given = self.at(key)
        value = given.value
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            given.problem(f"a number is wanted here, not {describe_value(value)}")
        elif not math.isfinite(value) or not least <= value <= most:
            given.problem(f"{value} cannot be; give a number from {least:.0f} to {most:.0f}")
        else:
            return float(value)
        return 0.0


def describe_value(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a map"
        case list():
            return "a list"
        case str():
            return f"the text {value!r:.40}"
    return f"the number {value!r:.40}"
