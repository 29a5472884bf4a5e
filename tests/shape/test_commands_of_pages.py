"""The flows that pages and examples show put no text that others choose into a command as it is: readers copy them."""

from pathlib import Path

import pytest

from mendflow.core.engine.inserted_inputs import inserted_inputs
from mendflow.core.model.errors import BadFlow
from mendflow.formats.yaml import read_flow_alone
from tests.shape.pages import blocks
from tests.shape.source import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))


def told_of(text: str, name: str) -> list[str]:
    """What is told of a flow; nothing of what is none, or cannot be read without the files beside it."""
    try:
        return inserted_inputs(read_flow_alone(text, name)) if "jobs:" in text or "steps:" in text else []
    except BadFlow:
        return []


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_no_flow_of_a_page_holds_a_text_that_others_choose_as_it_is(page: Path) -> None:  # SE-3
    found = [
        f"line {block.line}: {told}"
        for block in blocks(page.read_text())
        if block.language == "yaml" and not block.info.startswith("fragment")
        for told in told_of(block.text, "page.yaml")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(example.relative_to(ROOT)) for example in EXAMPLES])
def test_no_example_holds_a_text_that_others_choose_as_it_is(example: Path) -> None:  # SE-3
    assert not told_of(example.read_text(), example.name)
