"""A public class name has one meaning in the whole package, and names are words of the field."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.shape.source import PACKAGE, Place, listed, python_files

BUILDINGS_AND_TRADES = (
    *("House", "Roof", "Wing", "Desk", "Office", "Mailroom", "Book", "Shelf", "Lane", "Leash", "Vigil", "Crew"),
    *("Keeper", "Carrier", "Whereabouts", "Counterpart", "Happening", "Soon", "Mistake"),
)


def public_classes(source: str) -> list[ast.ClassDef]:
    found = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return [node for node in found if not node.name.startswith("_")]


def repeated(files: dict[Path, str]) -> list[Place]:
    places: dict[str, list[Place]] = defaultdict(list)
    for path, source in files.items():
        for node in public_classes(source):
            places[node.name].append(Place(path, node.lineno, f"class {node.name} has another of its name"))
    return [place for found in places.values() if len(found) > 1 for place in found]


def unplain(path: Path, source: str) -> list[Place]:
    return [
        Place(path, node.lineno, f"class {node.name}: say it with a word of the field")
        for node in public_classes(source)
        if any(node.name.endswith(word) for word in BUILDINGS_AND_TRADES)
    ]


def test_a_public_class_name_stands_once_in_the_package() -> None:
    found = repeated({path: path.read_text() for path in python_files("src")})
    assert not found, listed(found)


def test_no_class_is_named_after_a_building_or_a_trade() -> None:
    found = [place for path in python_files("src") for place in unplain(path, path.read_text())]
    assert not found, listed(found)


def test_the_reader_of_names_sees_one_that_stands_twice() -> None:
    first, second = PACKAGE / "core" / "a.py", PACKAGE / "pilot" / "b.py"
    assert len(repeated({first: "class Held: ...\nclass _Own: ...", second: "class Held: ...\nclass _Own: ..."})) == 2


@pytest.mark.parametrize("name", ["House", "OrderDesk", "RuleOffice", "MailBook"])
def test_the_reader_of_names_sees_a_building(name: str) -> None:
    assert unplain(PACKAGE / "core" / "a.py", f"class {name}: ...")
