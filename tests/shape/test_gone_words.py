"""Words that were given up for those that other tools use do not come back: neither in the help of the commands nor in
the documentation."""

import re
from pathlib import Path

import pytest

from mendflow.cli.command_table import COMMANDS
from mendflow.cli.main import load
from tests.shape.source import ROOT

GONE: dict[str, str] = {
    r"(?<![\w-])at-once(?![\w-])|\bat_once\b": "max-parallel",
    r"(?<![\w-])successful-only(?![\w-])|`enough`": "min-success",
    r"(?<![\w-])--slots\b": "--jobs",
    r"(?<![\w-])--said\b": "--data",
    r"(?<![\w-])--do\b": "--exlet",
    r"(?<![\w-])--reuse\b|\breused\b": "--cached, cached",
    r"(?<![\w-])--data(?= DIR|`, `--json)": "--data-dir",
    r"\bMENDFLOW_DATA\b": "MENDFLOW_DATA_DIR",
    r"\b[Hh]ouse rules?\b": "default rules",
    r"\bnotices\b(?!:)|/notices\b": "alerts",
    r"\bpromised (file|output)s?\b": "declared output",
    r"\bin(to)? keeping\b|\bkept files?\b": "stored",
    r"\bgone on with\b": "resume, continue",
    r"\bturns? of (a|the) loop\b": "iteration",
    r"run time, middle": "median run time",
    r"mendflow (continue|remove|release|tasks|sets|watches|storage|deploy|notices|version)\b(?! *=)": "see the table",
    r"/api/v1/(tasks|sets|watches|storage)\b": "worklist, data",
    r"^ *(- )?task: ": "user-task:",
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def helps() -> dict[str, str]:
    """The help of every command, by the words that call it."""
    found: dict[str, str] = {}
    waiting = [(name, load(name)) for name in COMMANDS]
    while waiting:
        name, command = waiting.pop()
        words = [f"{' '.join(param.opts)} {getattr(param, 'help', '') or ''}" for param in command.params]
        found[name] = "\n".join([f"mendflow {name}", command.help or "", *words])
        waiting += [(f"{name} {inner}", command.get_command(None, inner)) for inner in getattr(command, "commands", {})]
    return found


def gone(text: str) -> list[str]:
    return [
        f"{line.strip()[:100]!r}: say {ours}"
        for line in text.splitlines()
        for pattern, ours in GONE.items()
        if re.search(pattern, line)
    ]


def test_no_help_of_a_command_has_a_word_that_is_gone() -> None:
    found = {name: words for name, text in helps().items() if (words := gone(text))}
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_no_page_has_a_word_that_is_gone(page: Path) -> None:
    assert not gone(page.read_text())


@pytest.mark.parametrize(
    "line", ["mendflow run --slots 2", "    at-once: 3", "the house rules", "mendflow continue last"]
)
def test_a_word_that_is_gone_is_seen(line: str) -> None:
    assert gone(line)
