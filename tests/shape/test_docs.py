"""Every command and snippet in README and docs is done here, as its reader would do it. pages.py says how a page is
written so that it runs."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.servers.warm_starts import POSSIBLE
from tests.shape.pages import Block, Page, agrees, blocks, steps
from tests.shape.source import ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NO_ANCHOR = re.compile(r"[^\w\- ]")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLAYED = [
    pytest.param(page, id=str(page.relative_to(ROOT)), marks=() if page.parent == ROOT else pytest.mark.full)
    for page in PAGES
]
"""The pages of docs take minutes: the short check plays the README."""

COLD = frozenset({"README.md", "docs/do/quotas.md"})
"""Two pages whose commands start as they do for a reader; those of the others are forked from what has loaded mendflow,
and their text is the same."""


def environ(home: Path) -> dict[str, str]:
    """What a reader's shell has: this mendflow on the path, a home of its own, and no colours."""
    return {
        "HOME": str(home),
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
    }


@pytest.mark.parametrize("page", PLAYED)
def test_every_snippet_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    home = tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    for part in ("examples", "experiments"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    name = str(page.relative_to(ROOT))
    Page(name, page.read_text(), folder, environ(home), warm=POSSIBLE and name not in COLD).run()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if not target.startswith(("http", "#", "mailto:"))]
    missing = [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]
    assert not missing, f"{page.relative_to(ROOT)} links to what is not there: {missing}"


def headings(page: Path) -> set[str]:
    """What follows the # in a link to each heading."""
    told = HEADING.findall(FENCED.sub("", page.read_text()))
    return {NO_ANCHOR.sub("", LINKED.sub(r"\1", each).strip().lower()).replace(" ", "-") for each in told}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_heading_that_a_page_links_to_is_there(page: Path) -> None:
    targets = [target.partition("#") for target in LINK.findall(FENCED.sub("", page.read_text())) if "#" in target]
    asked = [(page.parent / path if path else page, anchor) for path, _, anchor in targets if "://" not in path]
    missing = [f"{to.name}#{anchor}" for to, anchor in asked if to.suffix == ".md" and anchor not in headings(to)]
    assert not missing, f"{page.relative_to(ROOT)} links to headings that are not there: {missing}"


def run(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    Page("page.md", text, folder, environ(tmp_path), timeout_s=20).run()


def test_a_page_runs_in_one_folder_and_one_shell(tmp_path: Path) -> None:
    run(
        "```python\n# file: a.py\nprint('seen')\n```\n```console\n$ x=3\n$ python a.py; echo $x\nseen\n3\n```\n",
        tmp_path,
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```console\n$ false\n```", "ended with 1"),
        ("```console\n$ echo a\nb\n```", "where the page shows"),
        ("```console norun\n$ reboot\n```", "why this block is not run"),
        ("```bash\nls\n```", "no such kind of block"),
        ("```python\nraise SystemExit(3)\n```", "ended with 3"),
        ("```console\n$ ls", "not closed"),
        ("```console\n$ exit 4\n```", "the shell ended"),
    ],
)
def test_a_page_that_is_wrong_is_told_so(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=complaint):
        run(text, tmp_path)


def test_a_command_may_fail_where_the_page_says_so(tmp_path: Path) -> None:
    run("```console\n$ (exit 7)\n$ echo $?\n7\n```", tmp_path)


def test_a_command_does_not_eat_the_ones_after_it(tmp_path: Path) -> None:
    run("```console\n$ cat\n$ echo on\non\n```", tmp_path)


def test_what_a_page_started_is_ended_with_it(tmp_path: Path) -> None:
    run("```console\n$ sleep 1000 & echo $! > pid\n$ cat pid\n...\n```", tmp_path)
    pid = int((tmp_path / "reader" / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a"], "a\nb\n", False),
        (["case ... is done"], "case night-7 is done", True),
        (["a", "...", "z"], "a\nb\nc\nz\n", True),
        (["a", "...", "z"], "a\nz\n", True),
        (["..."], "", True),
        ([], "whatever", True),
        (["a.c"], "abc", False),
    ],
)
def test_dots_stand_for_any_text_and_any_lines(expected: list[str], printed: str, same: bool) -> None:
    assert agrees(expected, printed) is same


def test_a_command_goes_on_after_a_backslash() -> None:
    (only,) = steps(Block("console", "", "$ echo a \\\n>   b\na b", 1))
    assert only.command == "echo a \\\n  b"
    assert only.expected == ["a b"]


def test_blocks_are_found_with_their_lines() -> None:
    (found,) = blocks("# A page\n\n```yaml fragment\na: 1\n```\n")
    assert found == Block("yaml", "fragment", "a: 1", 3)
