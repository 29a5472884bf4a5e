"""What is wrong with a trace is told with its place, what it is, and what to do; and nothing else happens."""

import copy
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.errors import BadFlow
from mendflow.formats.wfformat import load_trace, read_trace
from tests.formats.wfformat.traces import OURS, OURS_1_4, document


def complaints(text: str) -> list[str]:
    with pytest.raises(BadFlow) as caught:
        read_trace(text, "t.json")
    return [str(problem) for problem in caught.value.problems]


def changed(change: Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], object]) -> list[str]:
    """What is said of our trace after a change; `change` gets the root, the specification and the execution."""
    root = document()
    workflow = root["workflow"]
    change(root, workflow["specification"], workflow["execution"])
    return [each.split(" ", 1)[1] for each in complaints(json.dumps(root, indent=1))]


def test_every_problem_has_its_line_and_column() -> None:
    text = OURS.read_text().replace('"parents": ["split"]', '"parents": ["spilt"]', 1)
    text = text.replace('"runtimeInSeconds": 10,', '"runtimeInSeconds": "long",')
    lines = text.splitlines()
    first, second = (next(n for n, line in enumerate(lines) if word in line) for word in ("spilt", '"long"'))
    assert complaints(text) == [
        f"t.json:{first + 1}:{lines[first].index('spilt')}: workflow.specification.tasks[1].parents[0]: the parent"
        " 'spilt' is no task of this trace; correct its id, or add the task (did you mean `split`?)",
        f"t.json:{second + 1}:{lines[second].index('runtimeInSeconds')}: workflow.execution.tasks[3].runtimeInSeconds:"
        " a number is wanted here, not the text 'long'",
    ]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "1" + 5_000 * "0"])
def test_what_is_no_number_in_json_has_its_place_too(word: str) -> None:
    text = OURS.read_text().replace('"runtimeInSeconds": 10,', f'"runtimeInSeconds": {word}, "why": "NaN",')
    line = next(n for n, line in enumerate(text.splitlines(), 1) if word in line)
    column = text.splitlines()[line - 1].index(word) + 1
    assert complaints(text) == [
        f"t.json:{line}:{column}: this is not JSON: {word:.40} is no number that it can hold; correct it, or leave it"
        " out"
    ]


TASK = "workflow.specification.tasks"
RUN = "workflow.execution.tasks"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda root, _s, _e: root.pop("schemaVersion"), "`schemaVersion` is missing; this is no WfFormat trace: say"),
        (
            lambda root, _s, _e: root.update(schemaVersion="1.2"),
            "schemaVersion: version 1.2 is not read here, only 1.4",
        ),
        (lambda root, _s, _e: root.pop("name"), "`name` is missing; a trace has a name"),
        (lambda root, _s, _e: root.update(name=7), "name: a text is wanted here, not the number 7"),
        (lambda root, _s, _e: root.pop("workflow"), "workflow: `workflow` is a map with the tasks, not nothing"),
        (
            lambda root, _s, _e: root["workflow"].pop("specification"),
            "workflow.specification: `specification` is a map",
        ),
        (lambda _r, spec, _e: spec.pop("tasks"), "workflow.specification: a trace has `tasks`"),
        (lambda _r, spec, _e: spec.update(tasks=[]), f"{TASK}: the list is empty; a trace has at least one task"),
        (lambda _r, spec, _e: spec.update(tasks={}), f"{TASK}: a list is wanted here, not a map"),
        (lambda _r, spec, _e: spec["tasks"].append(3), f"{TASK}[4]: a map is wanted here, not the number 3"),
        (
            lambda _r, spec, _e: spec["tasks"][0].pop("id"),
            f"{TASK}[0]: `id` is missing; each task has an id of its own",
        ),
        (lambda _r, spec, _e: spec["tasks"][2].update(id="join"), f"{TASK}[3]: two tasks have the id 'join'"),
        (
            lambda _r, spec, _e: spec["tasks"][0].update(parents="x"),
            f"{TASK}[0].parents: a list is wanted here, not the",
        ),
        (
            lambda _r, spec, _e: spec["tasks"][0].update(children=[1]),
            f"{TASK}[0].children[0]: an id is a text, not the",
        ),
        (
            lambda _r, spec, _e: spec["tasks"][0].update(children=["x"]),
            f"{TASK}[0].children[0]: the child 'x' is no task",
        ),
        (lambda _r, spec, _e: spec["tasks"][0]["inputFiles"].append("plate.fit"), f"{TASK}[0].inputFiles: the file"),
        (
            lambda _r, spec, _e: spec["files"][0].update(sizeInBytes=-1),
            "workflow.specification.files[0].sizeInBytes: -1",
        ),
        (
            lambda _r, spec, _e: spec["files"][0].pop("sizeInBytes"),
            "workflow.specification.files[0]: it does not say how",
        ),
        (
            lambda _r, spec, _e: spec["files"].append(spec["files"][0]),
            "workflow.specification.files[7]: two files have",
        ),
        (lambda _r, _s, run: run["tasks"].pop(), "workflow.execution: nothing is said of how the task 'join' ran"),
        (lambda _r, _s, run: run["tasks"].append(run["tasks"][0]), f"{RUN}[4]: the task 'split' ran twice"),
        (lambda _r, _s, run: run["tasks"][0].update(id="splitt"), f"{RUN}[0]: the task 'splitt' is not in"),
        (
            lambda _r, _s, run: run["tasks"][0].pop("runtimeInSeconds"),
            f"{RUN}[0]: it does not say how long the task ran",
        ),
        (lambda _r, _s, run: run["tasks"][0].update(runtimeInSeconds=-3), f"{RUN}[0].runtimeInSeconds: -3 cannot be"),
        (
            lambda _r, _s, run: run["tasks"][0].update(runtimeInSeconds=1e300),
            f"{RUN}[0].runtimeInSeconds: 1e+300 cannot",
        ),
        (
            lambda _r, _s, run: run["tasks"][0].update(coreCount=True),
            f"{RUN}[0].coreCount: a number is wanted here, not",
        ),
        (
            lambda _r, _s, run: run["tasks"][0].update(command=[]),
            f"{RUN}[0].command: a command is a map with `program`",
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(change: Callable[..., object], told: str) -> None:
    found = changed(change)
    assert any(each.startswith(told) for each in found), found


def test_tasks_that_wait_for_each_other_are_named() -> None:
    found = changed(lambda _root, spec, _run: spec["tasks"][0].update(parents=["join"]))
    assert len(found) == 1
    assert "tasks wait for each other in a cycle: " in found[0]
    assert found[0].count(" -> ") == 3
    alone = changed(lambda _root, spec, _run: spec["tasks"][0].update(parents=["split"]))
    assert "in a cycle: split waits for itself; take one of these parents out" in alone[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "t.json:1:1: this is not JSON: expecting value"),
        ('{\n "a": 1,\n "b" 2}', "t.json:3:6: this is not JSON: expecting ':' delimiter"),
        ('{"a": NaN}', "t.json:1:7: this is not JSON: NaN is no number that it can hold"),
        ("[]", "t.json:1:1: this is no WfFormat trace, not a list"),
        ("[" * 100_000, "t.json: this is no WfFormat trace: lists and maps stand too deep in each other"),
    ],
)
def test_what_is_no_trace_at_all_is_told_as_that(text: str, told: str) -> None:
    (found,) = complaints(text)
    assert found.startswith(told)


def test_a_file_of_the_older_layout_is_an_input_or_an_output() -> None:
    text = OURS_1_4.read_text().replace('"link": "input", "name": "tile_1"', '"link": "inptu", "name": "tile_1"')
    (found,) = complaints(text)
    assert "workflow.tasks[1].files[0].link: 'inptu' is not known; a file is `input` or `output`" in found
    assert "(did you mean `input`?)" in found


def test_in_the_older_layout_a_run_time_may_be_left_out() -> None:
    trace = read_trace(OURS_1_4.read_text().replace('"runtimeInSeconds": 20,', ""), "t.json")
    assert trace.tasks["split"].runtime_s is None


def test_of_very_many_problems_the_first_are_told_and_the_rest_counted() -> None:
    found = changed(lambda _root, spec, _run: spec["tasks"][0].update(parents=[f"no-{n}" for n in range(80)]))
    assert len(found) == 51
    assert found[-1] == "and 30 more problems; mend these first"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wfformat = importlib.import_module("mendflow.formats.wfformat")  # `formats` itself has it lazily
    monkeypatch.setattr(wfformat, "TRACE_BYTES_MAX", 1024 * 1024)
    path = tmp_path / "large.json"
    path.write_text(" " * (1024 * 1024 + 1))
    with pytest.raises(BadFlow, match=r"the file is 1 MB; a flow file may have 1 MB"):
        load_trace(path)


def test_a_trace_that_is_not_there_is_told_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "survey.json").write_text("{}")
    with pytest.raises(BadFlow, match=r"there is no such file \(did you mean `survey.json`\?\)"):
        load_trace(tmp_path / "surve.json")


PLAIN = (st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
VALUES = st.one_of(*PLAIN, st.builds(list), st.builds(dict), st.builds(lambda: [[{}]]))
"""A new one each time: whatever is put somewhere is changed by the next."""


def slots_in(value: Any) -> list[tuple[Any, Any]]:
    """Every place in the data where something can be put instead."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [each for key in keys for each in ((value, key), *slots_in(value[key]))]


@given(st.data())
def test_whatever_stands_somewhere_a_trace_is_taken_or_refused_with_its_place(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([OURS, OURS_1_4]))
    root = copy.deepcopy(json.loads(path.read_text()))
    for _ in range(data.draw(st.integers(1, 3))):
        places = slots_in(root)
        if places:
            holder, key = data.draw(st.sampled_from(places))
            holder[key] = data.draw(VALUES)
    try:
        read_trace(json.dumps(root), "t.json")
    except BadFlow as error:
        assert error.problems
        assert all(problem.message for problem in error.problems)
