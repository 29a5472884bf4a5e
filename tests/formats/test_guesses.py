"""What people guess from other tools is refused with how it is said here, one row a guess."""

import pytest

from tests.formats.conftest import Complaints, Reader
from tests.formats.test_flows_run import World, well


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("resources: {memory: 2 GB}", "what a job needs stands beside `run`: `memory: 2 GB`"),
        ("outputs: {n: 3}", "lines `key=value` that a job writes to the file $MENDFLOW_OUTPUT are its outputs"),
        ("args: [1]", "arguments stand under `with:`"),
        ("threads: 4", "how many CPUs a job needs is `cpus: 4`"),
        ("container: busybox", "a job runs in the environment of its pilot"),
        ("max-parallel: 4", "is said inside the loop: `for-each: {sample: [...], max-parallel: 4}`"),
        ("tolerate: 10 %", "is said inside the loop: `for-each: {sample: [...], tolerate: 10 %}`"),
        ("continue-on-error: true", "has `after:` in place of `needs:`; a loop has `tolerate: 10 %`"),
        ("on: [75]", "`retries: {times: 4, on: [75]}`"),
        ("retry: 3", "is `retries: 4`, or `retries: {times: 4, wait: 1 s, on: [75]}`"),
        ("matrix: {x: [1]}", "a loop is `for-each: {sample: [a, b]}`; two names are all combinations"),
        ("strategy: {x: [1]}", "a loop is `for-each: {sample: [a, b]}`"),
        ("zip: true", "`for-each: {x: [...], y: [...], zip: true}`"),
        ("input: a.txt", "what a job takes stands under `inputs:`"),
        ("output: a.txt", "the files that a job leaves stand under `files:`"),
        ("finally: y", "`on-failure: COMMAND` at the job"),
        ("retry-on: 75", "`retries: {times: 4, wait: 1 s, on: [75]}`"),
        ("runs-on: big", "where a job runs is said by `site:` or `hosts:`"),
    ],
)
def test_a_key_of_another_tool_is_answered_with_ours(complaints: Complaints, key: str, hint: str) -> None:
    found = complaints(f"jobs:\n  a:\n    run: x\n    {key}\n")
    assert len(found) == 1 and found[0].startswith("4:5: a `run` step has no key") and hint in found[0], found


@pytest.mark.parametrize(
    ("step", "hint"),
    [
        ("{approval: Publish?}", "a person's work is a user task: `user-task: Publish?` with `role:`"),
        ("{human: Publish?}", "a person's work is a user task"),
        ("{uses: other.yaml}", "another flow is run with `call: other.yaml`"),
        ("{rum: x}", "(did you mean `run`?)"),
    ],
)
def test_a_step_of_another_tool_is_answered_with_ours(complaints: Complaints, step: str, hint: str) -> None:
    found = complaints(f"jobs:\n  a: {step}\n")
    assert len(found) == 1 and "nothing says what this step does" in found[0] and hint in found[0], found


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        (
            "trigger: {schedule: '0 2 * * *'}",
            "what starts cases by itself, and who is told of their ends, stands under",
        ),
        ("schedule: '0 2 * * *'", "have cron start a case by `mendflow start FLOW`"),
        ("flow: night", "a flow's name is `name:`"),
        ("params: {x: 1}", "what a flow is given stands under `inputs:`"),
        ("retries: 3", "what holds for every job stands under `defaults:`"),
        ("matrix: {x: [1]}", "a loop is `for-each: {sample: [a, b]}`"),
    ],
)
def test_a_key_of_the_flow_is_answered_with_ours(complaints: Complaints, key: str, hint: str) -> None:
    found = complaints(f"{key}\njobs: {{a: x}}\n")
    assert len(found) == 1 and found[0].startswith("1:1: a flow has no key") and hint in found[0], found


@pytest.mark.parametrize("step", ["{run: y, if: !has(jobs.a)}", "\n    run: y\n    if: !has(jobs.a)"])
def test_an_unquoted_exclamation_mark_is_told_to_be_quoted(complaints: Complaints, step: str) -> None:
    [said] = complaints(f"jobs:\n  a: x\n  b: {step}\n")
    assert 'a text that starts with `!` must be in quotes, such as "!has(jobs.' in said


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("inputs: {n: '${{ 1 }}'}\njobs: {a: x}", "1:13"),
        ("inputs: {n: {default: ['${{ 1 }}']}}\njobs: {a: x}", "1:23"),
        ("jobs:\n  a: {run: x, owner: '${{ 1 }}'}", "2:22"),
        ("jobs:\n  a: {call: '${{ 1 }}.yaml'}", "2:13"),
        ("jobs:\n  a: {call: b, domain: '${{ 1 }}'}", "2:24"),
        ("jobs:\n  a: {user-task: x, role: '${{ 1 }}'}", "2:27"),
        ("jobs:\n  a: {user-task: x, role: r, fields: {n: '${{ 1 }}'}}", "2:42"),
        ("steps:\n  - {scope: x, catch: {fault: '${{ 1 }}', do: y}}", "2:31"),
        ("steps:\n  - {invoke: '${{ 1 }}', operation: o}", "2:14"),
        ("jobs:\n  a: {run: x, priority: '${{ 1 }}'}", "2:25"),
        ("jobs:\n  a: {run: x, retry-wait: '${{ 1 }} s'}", "2:27"),
        ("jobs:\n  a: {run: x, limits: {open-files: '${{ 1 }}'}}", "2:36"),
        ("jobs:\n  a: {run: x, submit: '${{ 1 }}'}", "2:23"),
    ],
)
def test_an_expression_where_none_is_evaluated_is_refused(complaints: Complaints, text: str, place: str) -> None:
    found = complaints(f"{text}\n")
    assert len(found) == 1 and found[0].startswith(f"{place}: "), found
    assert "no expression can stand here" in found[0] or "is expected here, not the text" in found[0], found


def test_paths_of_inputs_and_sizes_with_expressions_are_evaluated(read: Reader) -> None:
    world = World(
        read("""
jobs:
  make: {run: one, files: f}
  use:
    for-each: {n: [1, 2]}
    run: two
    inputs: {"in-${{ n }}.txt": "${{ jobs.make.files.f }}"}
    memory: ${{ n }} GB
    time: ${{ n }} min
"""),
        well,
    )
    assert world.outputs() == {}
    specs = world.ran[1:]
    assert [list(spec.inputs) for spec in specs] == [["in-1.txt"], ["in-2.txt"]]
    assert [spec.resources.memory_bytes for spec in specs] == [10**9, 2 * 10**9]
    assert [spec.resources.wall_ms for spec in specs] == [60_000, 120_000]


def test_a_path_that_leads_out_of_the_folder_is_a_fault(read: Reader) -> None:
    flow = "jobs: {a: {run: x, files: f}, b: {run: y, inputs: {'${{ \"../\" }}x': '${{ jobs.a.files.f }}'}}}"
    world = World(read(flow), well)
    assert world.end is not None and world.end.fault is not None
    assert "which is no path inside the job's folder" in world.end.fault.message


def test_an_expression_in_braces_is_told_to_be_quoted(complaints: Complaints) -> None:
    [said] = complaints("jobs:\n  a: {for-each: [1], inputs: {in.txt: ${{ item }}}, run: x}\n")
    assert 'inside braces an expression must be in quotes, such as {in.txt: "${{ item }}"}' in said


@pytest.mark.parametrize("given", ["${{ jobs.a.files.t }}", "${{ jobs.a.files.t }}/"])
def test_files_of_another_job_need_a_place(complaints: Complaints, given: str) -> None:
    [said] = complaints(
        f'jobs:\n  a: {{for-each: [1], run: x, files: {{t: t.txt}}}}\n  b:\n    inputs: "{given}"\n    run: x\n'
    )
    assert 'did you mean `{parts/: "${{ jobs.a.files.t }}"}`?' in said
