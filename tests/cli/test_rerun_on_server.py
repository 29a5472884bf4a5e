"""`rerun` and `resume` beside a server: what is for the end of the case is done then, or refused."""

import json

import pytest

from tests.cli.conftest import Shell

FILES = """\
name: files
jobs:
  make: {run: echo made > out.txt, files: {out: out.txt}}
outputs: {out: "${{ jobs.make.files.out }}"}
"""


@pytest.fixture
def served(shell: Shell) -> Shell:
    """A folder with a server and a pilot, and a case that has ended."""
    shell.write("files.yaml", FILES)
    shell.start("serve", "--port", "0", "--jobs", "1")
    shell.until((shell.folder / ".mendflow" / "server.json").exists)
    shell.ok("start", "files.yaml", "--wait", "--quiet")
    return shell


def test_a_case_that_is_run_again_is_waited_for_and_its_outputs_are_fetched(served: Shell) -> None:  # UI-1
    told = served.ok("rerun", "last", "--wait", "--quiet", "--output-dir", "again", "--report", "again.html")
    assert "completed in" in told and "out: again/out.txt" in told
    assert (served.folder / "again/out.txt").read_text() == "made\n"
    assert (served.folder / "again.html").exists()
    assert len(served.json("cases")) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output-dir", "again"], "add --wait, or fetch the outputs later with mendflow watch CASE --output-dir DIR"),
        (["--report", "again.html"], "add --wait"),
        (["--overwrite"], "add --wait"),
        (["--jobs", "3"], "leave --jobs out, or give it to a pilot: mendflow pilot --jobs 3"),
        (["--keep"], "leave --keep out"),
    ],
)
def test_what_would_be_ignored_is_refused_and_nothing_is_started(  # UI-1
    served: Shell, words: list[str], said: str
) -> None:
    for command in ("rerun", "resume"):
        refused = served(command, "last", *words)
        assert refused.returncode == 2 and said in " ".join(refused.stderr.split()), refused.stderr
    refused = served("rerun", "--group", "abc", "--yes", "--output-dir", "again")
    assert refused.returncode == 2 and "are for one case" in refused.stderr
    assert len(served.json("cases")) == 1 and not (served.folder / "again").exists()


def test_a_case_that_is_resumed_is_waited_for(served: Shell) -> None:  # UI-1
    go = served.folder / "go"
    served.write("files.yaml", FILES.replace("echo made", f"until test -e {go}; do sleep 0.1; done; echo made"))
    case = json.loads(served.ok("start", "files.yaml", "--no-cache", "--json"))["id"]
    served.ok("suspend", case)
    go.touch()
    told = served.ok("resume", case, "--wait", "--quiet", "--output-dir", "resumed")
    assert "completed in" in told and (served.folder / "resumed/out.txt").read_text() == "made\n"
