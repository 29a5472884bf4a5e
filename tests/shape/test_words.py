"""The project speaks of itself alone, leaves nothing for later in its text, and keeps its modules short."""

import ast
import re
from pathlib import Path

import pytest

from tests.shape.source import ROOT, Place, listed, python_files, statements, text_files

LINES_MAX = 450
HERE = Path(__file__)

FORBIDDEN: dict[str, str] = {
    r"\bsession \d": "speaks of how it was made",
    r"\bissues? #?\d": "names a ticket; give the reason instead",
    r"(?<![\w.])/work/": "names a folder of one machine",
    r"/tmp/venv": "names a folder of one machine",
    r"\bhelper (agent|session)": "speaks of how it was made",
    r"(?i)\b(claude|chatgpt|copilot|language model)\b": "speaks of how it was made",
    r"://[\w.-]*(pythonhosted\.org|pypi\.org/simple|registry\.npmjs|artifactory)": "names a package registry",
    r"--(extra-)?index-url": "names a package registry",
    r"\b(TODO|FIXME|XXX)\b": "leaves something for later",
}
FORBIDDEN_IN_CODE: dict[str, str] = {
    r"\bNotImplementedError\b": "is not written yet",
    r"pytest\.(skip|xfail|importorskip)|mark\.(skip|skipif|xfail)": "a test that may prove nothing",
    r"\b(Magic|Async)?Mock\(": "a stand-in as proof",
}
BROAD = frozenset({"Exception", "BaseException"})
MAYBE_BROAD = re.compile(r"\b(Base)?Exception\b|\bexcept\s*:")
"""Where it is not found there is no broad except, and the text need not be parsed."""

SILENCED = re.compile(r"#\s*(noqa|type:\s*ignore)(\[[\w, -]+\]|:\s*[\w, ]+?)?\s*(?P<reason>.*)$")


def matches(path: Path, text: str, patterns: dict[str, str]) -> list[Place]:
    found = [(re.compile(pattern), reason) for pattern, reason in patterns.items() if re.search(pattern, text)]
    return [
        Place(path, number, f"{reason}: {line.strip()[:100]}")
        for number, line in enumerate(text.splitlines() if found else (), start=1)
        for pattern, reason in found
        if pattern.search(line)
    ]


def broad_excepts(path: Path, text: str) -> list[Place]:
    """A broad except stands only with its reason beside it (on its line, just above, or as the first line under it),
    or where it throws the same again after tidying up."""
    if not MAYBE_BROAD.search(text):
        return []
    lines = ["", *text.splitlines(), ""]
    handlers = [node for node in statements(text) if isinstance(node, ast.ExceptHandler) and _is_broad(node)]
    return [
        Place(path, handler.lineno, "broad except without its reason beside it")
        for handler in handlers
        if not any("#" in line for line in lines[handler.lineno - 1 : handler.lineno + 2])
        and not _throws_again(handler)
    ]


def _is_broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in caught)


def _throws_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def silenced(path: Path, text: str) -> list[Place]:
    return [
        Place(path, number, "a checker is silenced without saying why")
        for number, line in enumerate(text.splitlines(), start=1)
        if (found := SILENCED.search(line)) and len(found["reason"].lstrip("# -:")) < 8
    ]


def test_the_text_speaks_of_the_project_alone() -> None:
    found = [place for path in text_files() if path != HERE for place in matches(path, path.read_text(), FORBIDDEN)]
    assert not found, listed(found)


def test_the_code_leaves_nothing_unwritten_and_the_tests_skip_nothing() -> None:
    files = [path for path in python_files() if path != HERE]
    found = [place for path in files for place in matches(path, path.read_text(), FORBIDDEN_IN_CODE)]
    assert not found, listed(found)


def test_a_broad_except_has_its_reason_beside_it() -> None:
    found = [place for path in python_files() if path != HERE for place in broad_excepts(path, path.read_text())]
    assert not found, listed(found)


def test_a_silenced_checker_has_its_reason_beside_it() -> None:
    found = [place for path in python_files() if path != HERE for place in silenced(path, path.read_text())]
    assert not found, listed(found)


def test_no_module_is_too_long_for_one_subject() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in python_files()}
    found = [Place(path, lines, f"{lines} lines; split it") for path, lines in lengths.items() if lines > LINES_MAX]
    assert not found, listed(found)


@pytest.mark.parametrize("name", ["utils", "helpers", "misc", "common"])
def test_no_module_has_a_name_that_says_nothing(name: str) -> None:
    assert not [path for path in python_files() if path.stem == name]


def test_every_module_of_the_package_says_what_it_is() -> None:
    files = [path for path in python_files("src", "bench", "experiments", "tools") if path.stat().st_size]
    found = [Place(path, 1, "opens without a docstring") for path in files if not path.read_text().startswith('"""')]
    assert not found, listed(found)


@pytest.mark.parametrize(
    "line", ["# TODO: later", "seen in session 12", "see issue #4", "cd /work/main", "pip install --index-url x"]
)
def test_the_reader_of_words_sees_a_forbidden_one(line: str) -> None:
    assert matches(ROOT / "example.py", line, FORBIDDEN)


@pytest.mark.parametrize("line", ["the network/work/share", "it works", "this issue is solved", "todos"])
def test_the_reader_of_words_lets_plain_ones_pass(line: str) -> None:
    assert not matches(ROOT / "example.py", line, FORBIDDEN)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("try:\n    f()\nexcept Exception:\n    pass", True),
        ("try:\n    f()\nexcept:\n    pass", True),
        ("try:\n    f()\nexcept BaseException as e:\n    pass", True),
        ("try:\n    f()\nexcept Exception:  # the loop must go on\n    pass", False),
        ("try:\n    f()\nexcept Exception:\n    # the loop must go on\n    pass", False),
        ("try:\n    f()\nexcept BaseException:\n    tidy()\n    raise", False),
        ("try:\n    f()\nexcept ValueError:\n    pass", False),
    ],
)
def test_the_reader_of_excepts_tells_broad_ones_without_a_reason(text: str, wrong: bool) -> None:
    assert bool(broad_excepts(ROOT / "example.py", text)) == wrong


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("x = f()  # type: ignore", True),
        ("x = f()  # type: ignore[no-any-return]", True),
        ("x = f()  # noqa: BLE001", True),
        ("x = f()  # type: ignore[no-any-return]  # the library has no types", False),
        ("except Exception:  # noqa: BLE001 - one bad job must not end the loop", False),
    ],
)
def test_the_reader_of_silences_wants_a_reason(line: str, wrong: bool) -> None:
    assert bool(silenced(ROOT / "example.py", line)) == wrong
