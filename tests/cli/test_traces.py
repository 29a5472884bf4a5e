"""Traces on the command line: checked, drawn and run like any flow, and scaled as no other is."""

import json
import shutil

import pytest

from tests.cli.conftest import Shell
from tests.formats.wfformat.traces import OURS


@pytest.mark.full
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


def recorded(shell: Shell, name: str, *, makespan_s: float = 0.0, system: str = "") -> None:
    """The trace as a system recorded it, or as one that says nothing of that."""
    trace = json.loads(OURS.read_text())
    trace["workflow"]["execution"] |= {"makespanInSeconds": makespan_s} if makespan_s else {}
    if not makespan_s:
        trace["workflow"]["execution"].pop("makespanInSeconds", None)
    trace["runtimeSystem"] = {"name": system, "version": "1", "url": "https://example.org"}
    shell.write(name, json.dumps(trace))


def test_a_recorded_time_is_foretold_from_other_traces_of_the_same_system(shell: Shell) -> None:  # PJ-10
    for name, makespan_s in (("one.json", 900.0), ("two.json", 1000.0), ("three.json", 1100.0)):
        recorded(shell, name, makespan_s=makespan_s, system="Pegasus")
    pilots = ("--site", "here:slots=4,cpus=4", "--pilots", "1")
    words = ("sim", "one.json", *pilots, "--seeds", "1", "--no-what-if", "--quiet")
    like = ("--recorded-like", "two.json", "--recorded-like", "three.json")
    told = shell.json(*words, *like)
    assert told["recorded"]["added"] and len(told["recorded"]["learned_from"]) == 2
    plain = shell.json(*words)["prediction"]["turnaround_s"]["mean"]
    assert abs(told["prediction"]["turnaround_s"]["mean"] / 1000 - 1) < 0.2 and plain < 800
    assert "what that system took for itself in 2 other traces" in shell.ok(*words, *like)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--recorded-like", "one.json"), "is the trace itself: give others, or --as-recorded"),
        (("--recorded-like", "other.json"), "was recorded by Nextflow, and one.json by Pegasus"),
        (("--recorded-like", "silent.json"), "does not say how long it took"),
        (("--recorded-like", "two.json", "--as-recorded"), "give one"),
    ],
)
def test_what_foretells_nothing_is_refused(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    recorded(shell, "one.json", makespan_s=900, system="Pegasus")
    recorded(shell, "two.json", makespan_s=900, system="Pegasus")
    recorded(shell, "other.json", makespan_s=900, system="Nextflow")
    recorded(shell, "silent.json", system="Pegasus")
    refused = shell("sim", "one.json", *words, "--seeds", "1", "--pilots", "1")
    assert refused.returncode == 2 and sentence in refused.stderr, refused.stderr
