"""The pages as mkdocs gets them: code blocks with a language alone, and no link to what the site does not have."""

from types import SimpleNamespace

import pytest
import yaml

from tests.shape.source import ROOT
from tools.site_pages import on_page_markdown

PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="do/data.md"))


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("[a](../reference/cli.md#run)", "[a](../reference/cli.md#run)"),
        ("[a](https://example.org) [b](#here)", "[a](https://example.org) [b](#here)"),
        ("[the rules](../../examples/rules.yaml)", "the rules (`examples/rules.yaml`)"),
        ("[examples/bpel](../../examples/bpel)", "`examples/bpel`"),
        ("```console norun: it takes an hour\n$ ls\n```", "```console\n$ ls\n```"),
        ("```yaml fragment\n# file: a.yaml\nb: 1\n```", '```yaml title="a.yaml"\nb: 1\n```'),
        ("```json file=a.json\n{}\n```", '```json title="a.json"\n{}\n```'),
        ("- so:\n\n  ```console\n  $ ls\n  ```\n", "- so:\n\n  ```console\n  $ ls\n  ```\n"),
        ("```text\n[a](../../b)\n```", "```text\n[a](../../b)\n```"),
    ],
)
def test_a_page_is_given_to_mkdocs_in_its_own_words(written: str, given: str) -> None:
    assert on_page_markdown(written, page=PAGE) == given


def pages_of(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else []
    return [page for each in inner for page in pages_of(each)]


def test_every_page_has_one_place_in_the_menu() -> None:
    listed = pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(listed) == sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))


def test_the_site_loads_nothing_from_elsewhere() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert settings["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & settings.keys()
