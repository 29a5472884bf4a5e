"""A public class name has one meaning in the whole package, and names are words of the field."""

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.shape.source import PACKAGE, Place, listed, python_files

BUILDINGS_AND_TRADES = (
    *("House", "Roof", "Wing", "Desk", "Office", "Mailroom", "Book", "Shelf", "Lane", "Leash", "Vigil", "Crew"),
    *("Keeper", "Carrier", "Whereabouts", "Counterpart", "Happening", "Soon", "Mistake"),
)
BARE_WORDS = frozenset(
    {"again", "asked", "because", "came", "decided", "given", "going_on", "good", "heard", "kept", "living"}
    | {"looked", "mended", "owed", "passed", "said", "seen", "soon", "standing", "taken", "told", "useless", "wanted"}
)
"""Participles, adverbs and adjectives that say nothing as the whole name of a module, a function or a method."""

MAYBE_BARE = re.compile(rf"def\s+({'|'.join(BARE_WORDS)})\b")
"""Where it is not found no function has such a name, and the text need not be parsed."""

PUBLIC_CLASS = re.compile(r"class ([A-Za-z]\w*)")


class PublicClass(NamedTuple):
    name: str
    line: int


def public_classes(source: str) -> list[PublicClass]:
    """Those at the top of a module: the formatter sees to it that they stand at the beginning of a line."""
    return [
        PublicClass(found[1], number)
        for number, line in enumerate(source.splitlines(), start=1)
        if (found := PUBLIC_CLASS.match(line))
    ]


def repeated(files: dict[Path, str]) -> list[Place]:
    places: dict[str, list[Place]] = defaultdict(list)
    for path, source in files.items():
        for each in public_classes(source):
            places[each.name].append(Place(path, each.line, f"class {each.name} has another of its name"))
    return [place for found in places.values() if len(found) > 1 for place in found]


def unplain(path: Path, source: str) -> list[Place]:
    return [
        Place(path, each.line, f"class {each.name}: say it with a word of the field")
        for each in public_classes(source)
        if any(each.name.endswith(word) for word in BUILDINGS_AND_TRADES)
    ]


def test_a_public_class_name_stands_once_in_the_package() -> None:
    found = repeated({path: path.read_text() for path in python_files("src")})
    assert not found, listed(found)


def test_no_class_is_named_after_a_building_or_a_trade() -> None:
    found = [place for path in python_files("src") for place in unplain(path, path.read_text())]
    assert not found, listed(found)


def bare(path: Path, source: str) -> list[Place]:
    """Modules, functions and methods whose name is a bare word. Functions inside of functions are nobody's to call."""
    tree = ast.parse(source if MAYBE_BARE.search(source) else "")
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    found = [
        Place(path, node.lineno, f"{node.name}() does not say what it is or does")
        for body in bodies
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in BARE_WORDS
    ]
    return found + ([Place(path, 1, "the module's name says nothing")] if path.stem in BARE_WORDS else [])


def test_no_function_or_module_is_named_by_a_bare_word() -> None:
    found = [place for path in python_files("src") for place in bare(path, path.read_text())]
    assert not found, listed(found)


def test_the_reader_of_names_sees_a_bare_word() -> None:
    source = "class Ledger:\n    def owed(self): ...\n\ndef told(): ...\n\ndef fine():\n    def said(): ..."
    assert len(bare(PACKAGE / "core" / "again.py", source)) == 3


def test_the_reader_of_names_sees_one_that_stands_twice() -> None:
    first, second = PACKAGE / "core" / "a.py", PACKAGE / "pilot" / "b.py"
    assert len(repeated({first: "class Held: ...\nclass _Own: ...", second: "class Held: ...\nclass _Own: ..."})) == 2


@pytest.mark.parametrize("name", ["House", "OrderDesk", "RuleOffice", "MailBook"])
def test_the_reader_of_names_sees_a_building(name: str) -> None:
    assert unplain(PACKAGE / "core" / "a.py", f"class {name}: ...")
