"""An input of the type `file` that has a default is a file, as if it were given on the command line."""

import json

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

FLOW = """
name: greet
inputs: {one: {type: file, default: data/one.txt}}
jobs:
  read: {run: cat in, inputs: {in: "${{ inputs.one }}"}}
outputs: {name: "${{ inputs.one.name }}"}
"""
PYTHON = """
from pathlib import Path
from mendflow import flow, job

@job
def read(path: Path) -> str:
    return path.read_text()

@flow
def greet(one: Path = Path("data/one.txt")):
    return {"name": one.name, "text": read(one)}
"""
CALLER = """
name: caller
jobs:
  inner: {call: greet.yaml}
outputs: {name: "${{ jobs.inner.outputs.name }}"}
"""


@pytest.fixture
def folder(shell: Shell) -> Shell:
    (shell.folder / "flows" / "data").mkdir(parents=True)
    shell.write("flows/data/one.txt", "hello\n")
    shell.write("flows/greet.yaml", FLOW)
    shell.write("flows/greet.py", PYTHON)
    shell.write("flows/caller.yaml", CALLER)
    return shell


@pytest.mark.full
@pytest.mark.parametrize("file", ["greet.yaml", "greet.py"])
def test_a_default_file_is_one_beside_the_flow_wherever_the_command_stands(folder: Shell, file: str) -> None:  # DU-3
    done = json.loads(folder.ok("run", f"flows/{file}", "--quiet", "--json"))
    assert done["outputs"]["name"] == "one.txt"
    assert folder.json("cases")[0]["inputs"]["one"]["name"] == "one.txt"


@pytest.mark.full
def test_a_called_flow_and_a_deployed_one_have_their_default_files_too(folder: Shell) -> None:  # DU-3
    assert "name: one.txt" in folder.ok("run", "flows/caller.yaml", "--quiet")
    folder.ok("flows", "deploy", "flows/greet.yaml")
    (folder.folder / "flows" / "data" / "one.txt").unlink()
    folder.ok("start", "greet")
    assert "name: one.txt" in folder.ok("resume", "last", "--quiet")


@pytest.mark.full
def test_a_default_file_that_is_not_there_is_told_unless_another_is_given(folder: Shell) -> None:  # DU-3
    (folder.folder / "flows" / "data" / "one.txt").unlink()
    assert "there is no file data/one.txt, its default" in folder.ok("check", "flows/greet.yaml")
    refused = folder("run", "flows/greet.yaml", "--quiet")
    assert refused.returncode and "give --input one=FILE" in refused.stderr
    folder.write("two.txt", "other\n")
    assert "name: two.txt" in folder.ok("run", "flows/greet.yaml", "--quiet", "--input", "one=two.txt")
    folder.ok("flows", "deploy", "flows/greet.yaml")
    refused = folder("start", "greet")
    assert refused.returncode and "input one: there is no file" in refused.stderr


@pytest.mark.full
def test_a_default_file_that_was_corrected_is_taken_anew_by_a_rerun(folder: Shell) -> None:  # DU-3
    folder.ok("run", "flows/greet.yaml", "--quiet")
    folder.write("flows/data/one.txt", "corrected\n")
    done = folder("rerun", "last", "--quiet")
    assert done.returncode == 0 and "input one has changed since greet-" in " ".join(done.stderr.split())
    assert folder.ok("logs", "last:read") == "corrected\n"


TABLE = """
name: rows
inputs: {lanes: {type: table, default: lanes.csv}, one: {type: file, default: data/one.txt}}
jobs:
  count: {run: "echo ${{ inputs.lanes.size() }}"}
"""


def test_a_deployed_flow_says_which_of_its_tables_and_files_were_changed_since(folder: Shell) -> None:  # DU-3
    folder.write("flows/rows.yaml", TABLE)
    folder.write("flows/lanes.csv", "sample\na\n")
    folder.ok("flows", "deploy", "flows/rows.yaml")
    assert "has changed" not in folder("start", "rows").stderr
    folder.write("flows/lanes.csv", "sample\na\nb\n")
    folder.write("flows/data/one.txt", "other\n")
    told = " ".join(folder("start", "rows").stderr.split())
    for path, name in (("flows/lanes.csv", "lanes"), ("flows/data/one.txt", "one")):
        assert f"{path} has changed since rows was deployed, and the case takes it as it was then" in told
        assert f"--input {name}={path} takes it as it is now" in told
    told = folder("start", "rows", "--input", "lanes=flows/lanes.csv", "--input", "one=flows/data/one.txt").stderr
    assert "has changed" not in told


@pytest.mark.full
def test_a_rerun_names_the_table_that_was_changed_and_not_the_flow(folder: Shell) -> None:  # DU-3
    folder.write("flows/rows.yaml", TABLE)
    folder.write("flows/lanes.csv", "sample\na\n")
    folder.ok("run", "flows/rows.yaml", "--quiet")
    folder.write("flows/lanes.csv", "sample\na\nb\n")
    done = folder("rerun", "last", "--quiet")
    told = " ".join(done.stderr.split())
    assert done.returncode == 0 and "flows/lanes.csv has changed since rows-" in told
    assert folder.ok("logs", "last:count") == "2\n"


STATIONS = """
name: stations
inputs: {readings: {type: files, default: "incoming/*.csv"}}
jobs:
  count: {run: "echo ${{ inputs.readings.size() }} ${{ inputs.readings[0].name }}"}
"""


def test_a_server_that_reads_no_paths_gets_the_default_files_of_a_flow_file(shell: Shell) -> None:  # DU-3, SE-2
    (shell.folder / "flows" / "incoming").mkdir(parents=True)
    for name in ("dessau", "halle"):
        shell.write(f"flows/incoming/{name}.csv", name)
    shell.write("flows/stations.yaml", STATIONS)
    token = shell.ok("admin", "tokens", "line", "ann", "--role", "admin", "--append", "tokens").strip()
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--tokens", "tokens")
    shell.environment["MENDFLOW_TOKEN"] = token
    shell.ok("start", "flows/stations.yaml")
    [case] = shell.json("cases")
    assert [each["name"] for each in case["inputs"]["readings"]] == ["dessau.csv", "halle.csv"]
    assert case["origin"]["inputs"]["readings"].endswith("flows/incoming/*.csv")
    deployed = shell("flows", "deploy", "flows/stations.yaml")
    told = " ".join(deployed.stderr.split())
    assert "the default of readings is incoming/*.csv in" in told and "--files-root DIR" in told
    assert "the default of readings is incoming/*.csv" in " ".join(shell.ok("check", "flows/stations.yaml").split())
    refused = shell("start", "stations")
    assert "input readings: incoming/*.csv may not be read by this server" in " ".join(refused.stderr.split())
    (shell.folder / "flows" / "incoming" / "halle.csv").unlink()
    (shell.folder / "flows" / "incoming" / "dessau.csv").unlink()
    refused = shell("start", "flows/stations.yaml")
    assert "which is its default; give --input readings=FILES" in " ".join(refused.stderr.split())
