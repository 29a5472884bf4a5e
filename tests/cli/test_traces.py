"""Traces on the command line: checked, drawn and run like any flow, and scaled as no other is."""

import shutil

import pytest

from tests.cli.conftest import Shell
from tests.formats.wfformat.traces import OURS


def test_a_trace_is_run_with_scaled_times_and_sizes(shell: Shell) -> None:
    shutil.copy(OURS, shell.folder / "survey.json")
    told = shell.json("run", "survey.json", "--scale", "0.001", "--size-scale", "0.01", "--quiet")
    assert told["status"] == "completed"
    assert sum(count["done"] for count in told["counts"]) == 4
    items = {item["name"]: item for item in shell.json("items", "last")}
    assert set(items) == {"split", "clean_1", "clean_2", "join"}
    made = {name: [file["bytes"] for file in item["files"].values()] for name, item in items.items()}
    assert made == {"split": [20_000, 20_000], "clean_1": [15_000], "clean_2": [15_000], "join": [30_000]}


@pytest.mark.full
def test_a_second_run_takes_over_what_the_first_has_done(shell: Shell) -> None:
    shutil.copy(OURS, shell.folder / "survey.json")
    run = ("run", "survey.json", "--scale", "0.001", "--quiet")
    shell.ok(*run)
    again = shell.json(*run, "--cached")
    assert sum(count["cached"] for count in again["counts"]) == 4


def test_a_trace_is_checked_and_drawn(shell: Shell) -> None:
    shutil.copy(OURS, shell.folder / "survey.json")
    assert shell.ok("check", "survey.json") == "1 flow, no problems\n"
    assert shell.ok("flows", "graph", "survey.json") == "drawn: survey.html (4 jobs)\n"
    page = (shell.folder / "survey.html").read_text()
    assert all(f">{name}<" in page for name in ("split", "clean_1", "clean_2", "join"))
    told = shell.json("flows", "graph", "survey.json", "--out", "drawings/s.html")
    assert {"from": "split", "to": "clean_1"} in told["links"]
    assert told["work"] == ["split", "clean_1", "clean_2", "join"]
    assert (shell.folder / "drawings" / "s.html").exists()


def test_only_a_trace_can_be_scaled(shell: Shell) -> None:
    shell.write("flow.yaml", "name: f\njobs:\n  a: {run: 'true'}\n")
    refused = shell("run", "flow.yaml", "--scale", "0.1")
    assert refused.returncode == 2
    assert (
        "flow.yaml is not a trace, so its times cannot be scaled; leave --scale and --size-scale out" in refused.stderr
    )


def test_a_trace_with_problems_is_refused_with_all_of_them_and_leaves_no_trace(shell: Shell) -> None:
    text = OURS.read_text().replace('"parents": ["split"]', '"parents": ["spilt"]')
    shell.write("survey.json", text)
    refused = shell("run", "survey.json")
    assert refused.returncode == 2
    assert refused.stderr.count("the parent 'spilt' is no task of this trace") == 2
    assert not (shell.folder / ".mendflow").exists()
