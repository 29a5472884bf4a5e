"""The page of the architecture agrees with the tree: what it names is there, and every package and folder is named."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.shape.test_services import STANDS_ON

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mendflow"
PAGE = ROOT / "docs" / "understand" / "architecture.md"
PATH = re.compile(r"(?<![\w/.-])((?:[a-z_-]+/)+(?:[\w*.-]+\.(?:py|yaml|md|json|tsx?))?|[\w*-]+\.(?:py|tsx?))")
NAME = re.compile(r"`([A-Z]\w+)")
MODULE = re.compile(r"`python -m ([\w.]+)")
TREE_ENTRY = re.compile(r"^( *)(\w+)(/|\.py)", re.MULTILINE)
ANEW = re.compile(r"\*\*anew\*\* ([\w ,]+)")


class Change(NamedTuple):
    title: str
    main: str
    then: str
    tests: str

    @property
    def where(self) -> str:
        return f"{self.main}; {self.then}"


def section(title: str) -> str:
    return PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without the lines that divide a head from its rows."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def changes() -> list[Change]:
    text = section("Where a change goes").partition("\n### ")[2]
    return [Change(*row) for row in rows(text) if row[0] != "change"]


def generated() -> list[list[str]]:
    """What a row means by **anew**: its word, the file, the command."""
    return rows(section("Where a change goes").partition("\n### ")[0])[1:]


def tree() -> str:
    return section("The packages").partition("```text\n")[2].partition("```")[0]


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


def test_what_is_made_anew_has_a_command_that_is_there() -> None:
    known = {word for word, _, _ in generated()}
    asked = {word.strip() for change in changes() for list_ in ANEW.findall(change.then) for word in list_.split(",")}
    assert asked <= known, f"no command is said for {asked - known}"
    for _, _, command in generated():
        modules = [module.removeprefix("mendflow.").replace(".", "/") for module in MODULE.findall(command)]
        places = [ROOT / path for path in PATH.findall(command)]
        places += [each for module in modules for root in (PACKAGE, ROOT) for each in root.glob(f"{module}*")]
        assert places and all(place.exists() for place in places), command


ALSO = {
    "a new batch system": ("PSIJ_KINDS", "COMMANDS", "NAME_WORDS"),
    "a new store": ("Store", "stores/contract.py", "tests/contract/backends.py"),
    "a new alert": ("services/scheduling/sites/alerts.py", "SiteDocument"),
    "a new primitive of exlets": ("Change", "MendableJobs", "services/recovery/proxy/resubmission.py"),
    "a new field of a job": ("SlotWork", "FunctionCall"),
    "a new key of the flow format": ("Flow",),
    "a new command": ("ELSEWHERE", "docs/reference/cli.md"),
    "a page of the web app": ("web/src/app/router.tsx", "web/README.md"),
    "what a pilot tells the server, and what it is answered": ("SyncRequest", "RawRequest", "sim/grid/pilots.py"),
    "what the file store can do": ("FileStore", "sim/grid/files.py"),
    "what domains tell each other": ("DomainReport", "core/domains/routing.py"),
}
"""Places that are easily forgotten, and where nothing else tells that something is missing."""


@pytest.mark.parametrize("title", ALSO)
def test_a_change_names_the_places_that_are_easily_forgotten(title: str) -> None:
    [where] = [each.where for each in changes() if each.title == title]
    named = set(NAME.findall(where)) | files_named(where).keys()
    assert named >= set(ALSO[title])


def packages_of(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if (each / "__init__.py").is_file())


def test_every_package_stands_in_the_tree() -> None:
    entries = dict(re.findall(r"^  (\w+)/(.*?)(?=^  \w|^\w)", tree(), re.MULTILINE | re.DOTALL))
    assert [*packages_of(PACKAGE), "defaults"] and entries.keys() == {*packages_of(PACKAGE), "defaults"}
    for name, text in entries.items():
        missing = [each for each in packages_of(PACKAGE / name) if not re.search(rf"\b{each}/", text)]
        assert not missing, f"{name}: the tree does not name {missing}"


def test_every_module_beside_the_packages_stands_in_the_tree() -> None:
    modules = {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert modules and not [name for name in modules if not re.search(rf"(?<!/)\b{re.escape(name)}", tree())]


def test_every_folder_of_the_repository_stands_in_the_tree() -> None:
    folders = {"src", "web", "tests", "docs", "tools", "deploy", "examples", "bench", "experiments", "requirements"}
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert there - folders <= {"site", "dist", "outputs"}, "say on the page what this folder is"
    assert not [name for name in folders & there if not re.search(rf"(?<![\w/]){name}/", tree())]


def test_what_the_tree_lists_is_there() -> None:
    parents = {0: ROOT, 2: PACKAGE}
    for indent, name, ending in TREE_ENTRY.findall(tree()):
        depth = len(indent)
        if depth > 4:
            continue  # a line that goes on
        place = parents[depth] / (name if ending == "/" else name + ending)
        assert place.exists(), place
        if depth == 2:
            parents[4] = place


def test_every_folder_of_tests_is_in_the_table_of_what_it_proves() -> None:
    named = {word.strip() for row in rows(section("How this is kept true"))[1:] for word in row[0].split(",")}
    alike = {*packages_of(PACKAGE)}
    folders = {each.name for each in (ROOT / "tests").iterdir() if each.is_dir() and each.name[0] != "_"}
    assert folders - alike <= named, f"say on the page what these prove: {sorted(folders - alike - named)}"


def test_the_arrows_between_services_are_those_that_are_enforced() -> None:
    drawn = section("How services stand on each other").partition("```text\n")[2].partition("\n")[0]
    steps = [{name.strip() for name in step.split(",")} for step in drawn.split("─▶")]
    assert set().union(*steps) == STANDS_ON.keys()
    place = {name: number for number, step in enumerate(steps) for name in step}
    assert not [(room, on) for room in STANDS_ON for on in STANDS_ON[room] - {room} if place[on] <= place[room]]
