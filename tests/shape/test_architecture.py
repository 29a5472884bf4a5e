"""The table that says where a change goes names modules, folders and names that are there."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mendflow"
PAGE = ROOT / "docs" / "understand" / "architecture.md"
PATH = re.compile(r"(?<![\w/.-])((?:[a-z_-]+/)+(?:[\w*-]+\.(?:py|yaml|md))?|[\w*]+\.py)")
NAME = re.compile(r"`([A-Z]\w+)")


class Change(NamedTuple):
    title: str
    where: str
    tests: str


def changes() -> list[Change]:
    section = PAGE.read_text().partition("## Where a change goes")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [Change(*(cell.strip() for cell in row)) for row in rows[1:]]


def files_named(text: str) -> dict[str, list[Path]]:
    """The paths that a cell names, with what is there. A bare name stands in the folder of the path before it."""
    found: dict[str, list[Path]] = {}
    folder = PACKAGE
    for path in PATH.findall(re.sub(r"\]\([^)]*\)", "]", text)):
        places = [PACKAGE, ROOT] if "/" in path else [folder, PACKAGE]
        found[path] = [each for place in places for each in place.glob(path)]
        if "/" in path and found[path]:
            folder = found[path][0] if found[path][0].is_dir() else found[path][0].parent
    return found


@pytest.mark.parametrize("change", changes(), ids=lambda change: change.title)
def test_what_a_change_touches_is_there(change: Change) -> None:
    found = files_named(change.where)
    assert found and all(found.values()), {path for path, there in found.items() if not there}
    text = "".join(each.read_text() for there in found.values() for each in there if each.is_file())
    assert not [name for name in NAME.findall(change.where) if not re.search(rf"\b{name}\b", text)]
    for path in re.findall(r"tests/[\w/*.]+", change.tests):
        assert list(ROOT.glob(path)), f"there is no {path}"


def test_the_table_has_rows() -> None:
    assert len(changes()) > 25


ALSO = {
    "a new batch system": ("PSIJ_KINDS", "COMMANDS", "NAME_WORDS"),
    "a new store": ("tests/contract/backends.py",),
    "a new alert": ("services/scheduling/sites/alerts.py", "SiteDocument"),
    "a new primitive of exlets": ("Change", "MendableJobs", "services/recovery/proxy/resubmission.py"),
    "a new field of a job": ("SlotWork", "FunctionCall"),
    "a new key of the flow format": ("Flow",),
    "a new command": ("ELSEWHERE",),
    "what the file store can do": ("FileStore", "sim/grid/files.py"),
    "what domains tell each other": ("DomainReport", "core/domains/routing.py"),
}
"""Places that are easily forgotten, and where nothing else tells that something is missing."""


@pytest.mark.parametrize("title", ALSO)
def test_a_change_names_the_places_that_are_easily_forgotten(title: str) -> None:
    [where] = [each.where for each in changes() if each.title == title]
    named = set(NAME.findall(where)) | files_named(where).keys()
    assert named >= set(ALSO[title])
