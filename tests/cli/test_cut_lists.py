"""Lists whose pages end before all was skipped that was to be: the rows shown are those that follow."""  # JS-6

import json

import pytest

from mendflow.services.api import view_operations
from mendflow.services.base import paging
from tests.cli.conftest import Shell

FLOW = """
name: many
jobs:
  a:
    for-each: [0, 1, 2, 3, 4, 5, 6, 7, 8]
    run: "true"
"""


@pytest.fixture
def many(shell: Shell) -> Shell:
    shell.ok("run", str(shell.write("many.yaml", FLOW)))
    return shell


def test_items_after_an_offset_are_the_same_however_many_one_answer_looks_at(
    many: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("items", "last", "--where", "state == 'completed'", "--offset", "5", "--limit", "3")
    whole = [row["item"] for row in many.json(*words)]
    monkeypatch.setattr(view_operations, "EXAMINED_MAX", 2)
    monkeypatch.setattr(view_operations, "CONDITION_MAX", 2)
    assert [row["item"] for row in many.json(*words)] == whole
    assert len(whole) == 3


def test_the_place_that_a_cut_list_of_jobs_tells_goes_on_with_the_rows_that_follow(
    many: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("jobs", "last", "--where", "attempts < 5", "--order", "id", "--json")
    whole = [row["id"] for row in json.loads(many.ok(*words))]
    monkeypatch.setattr(paging, "EXAMINED_MAX", 2)
    done = many(*words, "--offset", "5")
    found, pages = [row["id"] for row in json.loads(done.stdout)], 1
    while "--after " in done.stderr:
        done = many(*words, "--after", done.stderr.split("--after ")[1].split()[0])
        found, pages = found + [row["id"] for row in json.loads(done.stdout)], pages + 1
    assert (len(whole), found) == (9, whole[5:])
    assert pages >= 4
