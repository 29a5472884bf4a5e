"""Folders and patterns that a job leaves: lists of plain files in the order of their paths."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.pilot.files.publishing import SMALL_BYTES
from mendflow.pilot.slot import declared_outputs
from mendflow.pilot.slot.declared_outputs import find_outputs
from tests.pilot.conftest import Pilot, Server

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("r/b", "r/a", "r/.hidden", "r/deep/\u65e5\u672c.txt", "in.csv", "x-10.csv", "x-2.csv", "d/e/f.csv"):
        path = tmp_path / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "job" / "void").mkdir()
    (tmp_path / "job" / ".mendflow.value0.json").write_text("1")
    return tmp_path / "job"


@pytest.mark.parametrize(
    ("path", "base", "found"),
    [
        ("r/", "r", ["r/.hidden", "r/a", "r/b", "r/deep/\u65e5\u672c.txt"]),
        ("*.csv", "", ["x-10.csv", "x-2.csv"]),
        ("x-?.csv", "", ["x-2.csv"]),
        ("r/*", "r", ["r/a", "r/b", "r/deep/\u65e5\u672c.txt"]),
        ("**/*.csv", "", ["d/e/f.csv", "x-10.csv", "x-2.csv"]),
        ("d/*/", "d", ["d/e/f.csv"]),
    ],
)
def test_a_list_is_what_the_job_made_in_the_order_of_the_paths(
    path: str, base: str, found: list[str], folder: Path
) -> None:  # DU-3
    left = find_outputs({"o": path}, str(folder), ["o"], inputs=["in.csv"])
    assert left.fault is None and not left.files
    assert (left.lists["o"].base, left.lists["o"].paths) == (base, found)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("*.tsv", "matches no file that the job has made"),
        ("in*", "matches no file that the job has made"),
        ("void/", "is an empty folder"),
        ("none/", "is not there"),
        ("in.csv/", "is not a folder"),
        ("pipes/", "is a named pipe"),
        ("links/", "outside of the job's folder"),
        ("away/", "link to a folder"),
        ("bytes/", "not UTF-8"),
    ],
)
def test_whatever_is_no_list_of_files_is_told(path: str, told: str, folder: Path) -> None:  # DU-3
    for name in ("pipes", "links", "away", "bytes"):
        (folder / name).mkdir()
    os.mkfifo(folder / "pipes" / "p")
    (folder / "links" / "l").symlink_to("/etc/passwd")
    (folder / "away" / "a").symlink_to("/etc")
    with open(os.fsencode(folder / "bytes") + b"/\xff", "w"):
        pass
    left = find_outputs({"o": path}, str(folder), ["o"], inputs=["in.csv"])
    assert left.fault is not None and told in left.fault.message and left.fault.name == "missingOutput"


def test_too_many_files_are_told_to_be_packed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared_outputs, "LISTED_MAX", 3)
    left = find_outputs({"o": "r/"}, str(folder), ["o"])
    assert left.fault is not None and "4 files, more than 3: pack them into one" in left.fault.message


def test_a_folder_that_was_declared_as_a_file_is_told_how_to_declare_it(folder: Path) -> None:
    left = find_outputs({"o": "r"}, str(folder))
    assert left.fault is not None and "end its path with `/`" in left.fault.message


async def test_lists_are_stored_with_their_names_and_modes(server: Server, hire: Hire) -> None:  # DU-3
    hire()
    command = """
        echo 1 > r/Gr\u00f6\u00dfe
        mkdir r/deep
        echo 2 > r/deep/run
        chmod +x r/deep/run
        echo 3 > t-1.csv
        echo 4 > one
    """
    files = {"results": "r/", "tables": "*.csv", "one": "one"}
    outcome = await server.outcome(await server.shell(command, files=files, file_lists=("results", "tables")))
    assert outcome.ok, outcome.fault
    assert {name: [(ref.name, ref.executable) for ref in refs] for name, refs in outcome.file_lists.items()} == {
        "results": [("Gr\u00f6\u00dfe", False), ("deep/run", True)],
        "tables": [("t-1.csv", False)],
    }
    kept = [server.ledger.files[ref.sha256] for refs in outcome.file_lists.values() for ref in refs]
    assert kept == [b"1\n", b"2\n", b"3\n"] and list(outcome.files) == ["one"]


@pytest.mark.full
async def test_small_files_are_sent_together_and_large_ones_alone(server: Server, hire: Hire) -> None:  # DU-3
    hire()
    command = f"for i in $(seq 1200); do echo $i > r/$i; done; head -c {SMALL_BYTES + 1} /dev/zero > r/large"
    outcome = await server.outcome(await server.shell(command, files={"all": "r/"}, file_lists=("all",)))
    assert outcome.ok, outcome.fault
    kept = {ref.name: server.ledger.files[ref.sha256] for ref in outcome.file_lists["all"]}
    assert kept == {str(i): f"{i}\n".encode() for i in range(1, 1201)} | {"large": bytes(SMALL_BYTES + 1)}
    assert server.ledger.sent_together == [1000, 200]


@ONE_LOOP
async def test_an_executable_input_is_executable_also_where_inputs_are_links(staffed: Server) -> None:
    made = await staffed.outcome(
        await staffed.shell("printf '#!/bin/sh\\necho ran' > tool; chmod 700 tool", files={"tool": "tool"})
    )
    tool = made.files["tool"]
    assert tool.executable
    for link in (False, True):
        job = await staffed.shell("bin/tool", inputs={"bin/tool": tool}, link_inputs=link)
        outcome = await staffed.outcome(job)
        assert outcome.ok and outcome.log_tail == "ran\n"


@ONE_LOOP
async def test_a_folder_that_cannot_be_listed_is_not_left_out_without_a_word(staffed: Server) -> None:
    """This one is deeper than any path may be long."""
    deeper = "import os\nfor _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\nopen('lost', 'w').close()"
    command = f'echo 1 > r/a; cd r; python3 -c "{deeper}"'
    outcome = await staffed.outcome(await staffed.shell(command, files={"results": "r/"}, file_lists=("results",)))
    assert outcome.fault is not None and outcome.fault.name == "missingOutput"
    assert "has a folder that cannot be listed (File name too long)" in outcome.fault.message
