"""Of the files that a flow file names a server is sent those in its folder, and no others."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from mendflow.cli.case_origins import with_own_paths
from mendflow.client import Client
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import CaseOrigin, CaseView
from tests.cli.conftest import Shell
from tests.cli.test_server import served

ONE = """
name: one
inputs: {reference: {type: file, default: DEFAULT}}
jobs:
  read: {run: cat in, inputs: {in: "${{ inputs.reference }}"}}
"""
MANY = 'name: many\ninputs: {all: {type: files, default: "DEFAULT"}}\njobs:\n  read: {run: "true"}\n'
TABLE = "name: rows\ninputs: {rows: {type: table, default: DEFAULT}}\njobs:\n  read: {run: 'true'}\n"
CELLS = """
name: cells
inputs: {rows: {type: table, default: rows.csv, columns: {file: file}}}
jobs:
  read: {run: "true"}
"""
STEP = "name: step\njobs:\n  read: {run: cat in, inputs: {in: DEFAULT}}\n"


@pytest.fixture
def folder(shell: Shell) -> Shell:
    """A folder of flows, a secret beside it, and a server that is somewhere else."""
    (shell.folder / "flows" / "data").mkdir(parents=True)
    (shell.folder / "keys").mkdir()
    shell.write("flows/data/one.txt", "hello\n")
    shell.write("keys/id", "secret\n")
    shell.write("keys/id.csv", "name\nsecret\n")
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    return shell


def stored(shell: Shell) -> list[str]:
    return [each.read_text(errors="replace") for each in (shell.folder / ".mendflow").rglob("*") if each.is_file()]


def told_of(shell: Shell, *command: str) -> str:
    refused = shell(*command)
    assert refused.returncode, refused.stdout
    return " ".join(refused.stderr.split())


@pytest.mark.parametrize("default", ["../keys/id", "ABSOLUTE", "link", "linked/id", "data/../../keys/id"])
def test_a_default_elsewhere_is_sent_on_the_users_word_alone(folder: Shell, default: str) -> None:  # SE-4
    (folder.folder / "flows" / "link").symlink_to(folder.folder / "keys" / "id")
    (folder.folder / "flows" / "linked").symlink_to(folder.folder / "keys")
    path = folder.folder / "keys" / "id"
    folder.write("flows/one.yaml", ONE.replace("DEFAULT", default.replace("ABSOLUTE", str(path))))
    for command in (["flows", "deploy"], ["start"], ["run", "--server", folder.environment["MENDFLOW_SERVER"]]):
        told = told_of(folder, *command, "flows/one.yaml")
        assert f"files that are not in its folder {folder.folder / 'flows'}" in told
        assert "the default of input reference: give it at the start, by --input reference=" in told
        assert str(path) in told
    assert not folder.json("cases") and not [each for each in stored(folder) if "secret" in each]
    folder.ok("start", "flows/one.yaml", "--input", f"reference={path}")
    assert folder.json("cases")[0]["inputs"]["reference"]["name"] == "id"


def test_a_default_in_the_folder_is_sent_and_told(folder: Shell) -> None:  # SE-4
    folder.write("flows/one.yaml", ONE.replace("DEFAULT", str(folder.folder / "flows" / "data" / "one.txt")))
    for command in (["flows", "deploy"], ["start"]):
        done = folder(*command, "flows/one.yaml")
        assert done.returncode == 0, done.stderr
        assert "the server is sent defaults of one: data/one.txt" in " ".join(done.stderr.split())


@pytest.mark.parametrize("default", ["../keys/*", "linked/i*"])
def test_nor_does_a_pattern_lead_elsewhere(folder: Shell, default: str) -> None:  # SE-4
    (folder.folder / "flows" / "linked").symlink_to(folder.folder / "keys")
    folder.write("flows/many.yaml", MANY.replace("DEFAULT", default))
    assert "a default of input all: give it at the start, by --input all=" in told_of(
        folder, "start", "flows/many.yaml"
    )
    folder.write("flows/many.yaml", MANY.replace("DEFAULT", "data/*"))
    assert "defaults of many: data/one.txt" in " ".join(folder("start", "flows/many.yaml").stderr.split())


@pytest.mark.parametrize(
    ("text", "default", "what"),
    [
        (TABLE, "../keys/id.csv", "the default of input rows"),
        (CELLS, "", "in the table that is the default of input rows"),
        (STEP, "../keys/id", "a file of read"),
    ],
)
def test_nor_does_a_table_or_a_job(folder: Shell, text: str, default: str, what: str) -> None:  # SE-4
    folder.write("flows/rows.csv", "file\n../keys/id\n")
    folder.write("flows/other.yaml", text.replace("DEFAULT", default))
    assert what in told_of(folder, "flows", "deploy", "flows/other.yaml")
    assert what in told_of(folder, "start", "flows/other.yaml")


def test_what_is_run_here_reads_what_it_can_read(folder: Shell) -> None:  # SE-4
    folder.write("flows/one.yaml", ONE.replace("DEFAULT", "../keys/id"))
    folder.ok("run", "flows/one.yaml", "--quiet", "--data-dir", str(Path(folder.folder, "own")))


class Asker:
    """A client that knows only who asks."""

    async def me(self) -> SimpleNamespace:
        return SimpleNamespace(name="ann", teller="account ann")


async def test_no_file_is_sent_for_the_path_that_somebody_else_has_named() -> None:  # SE-4
    origin = CaseOrigin(flow="/home/ann/flow.yaml", inputs={"reference": "/home/ann/.ssh/id"})
    case = CaseView(id=CaseId("one-1"), flow="one", digest="d", status="failed", started_at=1, owner="ann")
    asker = cast(Client, Asker())
    for teller in ("eve", "ann", ""):
        told = msgspec.structs.replace(origin, told_by=teller)
        assert (await with_own_paths(asker, msgspec.structs.replace(case, origin=told))).origin is None
    own = msgspec.structs.replace(origin, told_by="account ann")
    assert (await with_own_paths(asker, msgspec.structs.replace(case, origin=own))).origin == own
