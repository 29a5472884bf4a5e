"""Traces become flows: their tasks, what waits for what, their files, and what they took."""

import hashlib
import subprocess
import warnings
from pathlib import Path

import msgspec
import pytest

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import JobActivity, Parallel
from mendflow.core.model.values import file_of
from mendflow.formats import load
from mendflow.formats.check import check
from mendflow.formats.wfformat import Scale, Trace, as_flow, by_name, load_trace
from mendflow.formats.wfformat.program import command_for, content_of, digest_of
from tests.formats.wfformat.traces import ABSENT, CONFORMANCE, OURS, OURS_1_4, REAL, made_up


def jobs(trace: Trace, scale: Scale | None = None) -> dict[str, JobActivity]:
    body = as_flow(trace, scale or Scale()).flow.body
    assert isinstance(body, Parallel)
    found = {each.name: each for each in body.branches if isinstance(each, JobActivity)}
    assert len(found) == len(trace.tasks)
    return found


def test_it_is_said_if_the_traces_of_wfcommons_are_absent() -> None:
    if len(REAL) == 2:
        warnings.warn(ABSENT, stacklevel=1)
    assert not CONFORMANCE.is_dir() or len(REAL) > 2, "the folder is there, and holds no trace"


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_every_trace_is_a_flow_with_a_job_for_each_task_and_all_its_files(path: Path) -> None:
    assert check([path]) == []
    trace = load_trace(path)
    made = as_flow(trace, Scale(time=0.01), by_name)
    plan = compile_flow(made.flow)
    named = {node.name for node in plan.nodes if node.kind == "job"}
    assert named == set(made.works)
    assert len(named) == len(trace.tasks)
    assert len(plan.links) == sum(len(task.needs) for task in trace.tasks.values())
    read = [file for task in trace.tasks.values() for file in task.reads]
    inputs = [source for node in plan.nodes if node.kind == "job" for source in node.activity.inputs.values()]
    assert len(inputs) == len(read)
    assert sum(work.seconds for work in made.works.values()) == pytest.approx(
        0.01 * sum(task.runtime_s or 0 for task in trace.tasks.values())
    )


def test_a_trace_says_what_its_tasks_took_and_were_given() -> None:
    trace = load_trace(OURS)
    assert (trace.makespan_s, trace.machines, trace.tasks["split"].program) == (61, 1, "split")
    assert trace.initial_files == ["/sky/plate.fits", "/sky/dark.fits"]
    found = jobs(trace, Scale(time=0.1, size=0.001))
    assert [found[name].targets for name in ("split", "join")] == [(), ("clean_1->join", "clean_2->join")]
    assert found["join"].join == "all"
    assert found["join"].inputs == {
        "in/1-clean.fits": "${{ jobs.clean_1.files.f1 }}",
        "in/2-clean.fits": "${{ jobs.clean_2.files.f1 }}",
    }
    given = file_of(found["clean_1"].inputs["in/2-dark.fits"])
    assert given is not None
    assert (given.bytes, given.name) == (1000, "sky_dark.fits")
    assert "sleep 3.000\n" in (found["clean_1"].command or "")
    assert found["clean_1"].priority == 5


def test_jobs_ask_for_what_the_trace_says_and_for_nothing_else() -> None:
    found = jobs(load_trace(OURS))
    assert [found[name].resources.cpus for name in ("split", "clean_1")] == [1.0, 2.0]
    memory = [found[name].resources.memory_bytes for name in ("split", "clean_1", "clean_2")]
    assert memory == [0, 400_000_000, 64 * 1024 * 1024], "a job that may not use what a shell needs would be ended"
    assert found["join"].resources.site == "", "the machines of a trace are not those that are here"
    small = jobs(load_trace(OURS), Scale(cores_most=1, memory_bytes_most=100_000_000))["clean_1"].resources
    assert (small.cpus, small.memory_bytes) == (1.0, 100_000_000)


def test_the_older_layout_says_the_same() -> None:
    new, old = load_trace(OURS), load_trace(OURS_1_4)
    assert msgspec.structs.replace(old, version="1.5") == new


def test_a_need_may_be_told_from_either_side_or_only_by_a_file() -> None:
    trace = made_up({"b": [], "a": []}, reads={"b": ["x"]}, makes={"a": ["x"]})
    assert trace.tasks["b"].needs == ("a",)
    assert trace.tasks["b"].made_by == {"x": "a"}


def test_a_file_that_is_written_again_later_comes_from_whom_the_task_needs() -> None:
    trace = made_up(
        {"a": [], "b": ["a"], "c": ["b"]},
        reads={"a": ["x"], "b": ["x"], "c": ["x"]},
        makes={"a": ["x"], "b": ["x"]},
    )
    assert trace.tasks["a"].made_by == {}, "what only the future makes was there before"
    assert trace.tasks["b"].made_by == {"x": "a"}
    assert trace.tasks["c"].made_by == {"x": "b"}
    assert trace.initial_files == ["x"]


def test_ids_that_no_job_may_have_become_names_of_their_own() -> None:
    tasks = ["a.b", "a#b", "a_b", "1", "-", "x" * 300, "x" * 301]
    found = jobs(made_up(dict.fromkeys(tasks, ())))
    assert list(found) == ["a_b", "a_b-2", "a_b-3", "t1", "task", "x" * 100, "x" * 98 + "-2"]


def test_what_is_there_at_all_is_never_scaled_to_nothing() -> None:
    scale = Scale(size=1e-9)
    assert [scale.bytes(size) for size in (0, 1, 10**9, 10**9 + 1)] == [0, 1, 1, 2]


@pytest.mark.parametrize("scale", [Scale(time=-1), Scale(size=-0.1), Scale(time=float("nan")), Scale(size=1e9)])
def test_a_scale_that_makes_no_sense_is_refused(scale: Scale) -> None:
    with pytest.raises(InvalidRequest, match=r"the scale of (time|size)s is .*; give a number from 0 to"):
        as_flow(load_trace(OURS), scale)


def test_the_program_of_a_task_makes_files_that_are_known_before(tmp_path: Path) -> None:
    makes = {"1-a b": ("first", 100_000), "2-b": ("second", 7), "3-c": ("third", 0), "4-d": ("fourth", 32)}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1-x").write_text("x")
    subprocess.run(["/bin/sh", "-c", command_for(0.001, reads=True, makes=makes)], cwd=tmp_path, check=True)
    for path, (file, size) in makes.items():
        content = (tmp_path / path).read_bytes()
        assert content == b"".join(content_of(file, size))
        assert hashlib.sha256(content).hexdigest() == digest_of(file, size)
        assert len(content) == size


def test_a_program_that_cannot_read_its_inputs_fails(tmp_path: Path) -> None:
    command = command_for(0.0, reads=True, makes={})
    assert subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=False, capture_output=True).returncode != 0


def test_two_files_of_a_trace_are_never_the_same_to_a_cache() -> None:
    assert digest_of("a", 1000) != digest_of("b", 1000)
    assert digest_of("a", 1000) != digest_of("a", 1001)


def test_a_trace_without_run_times_is_a_flow_whose_jobs_take_none(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(
        '{"name": "1st plan", "schemaVersion": "1.6", "workflow": {"specification": {"tasks": '
        '[{"name": "a", "id": "a", "parents": [""], "children": [], "outputFiles": ["x"], "own": [1]}]}}}'
    )
    flow = load(path)
    assert flow.name == "t1st_plan"
    assert load_trace(path).tasks["a"].runtime_s is None


def test_thousands_of_tasks_are_read_and_put_in_order() -> None:
    width = 1000
    tasks = {f"{layer}-{n}": ([f"{layer - 1}-{n}"] if layer else []) for layer in range(5) for n in range(width)}
    assert len(compile_flow(as_flow(made_up(tasks), Scale()).flow).links) == 4 * width
