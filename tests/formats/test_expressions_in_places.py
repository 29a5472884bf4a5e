"""Where an expression is evaluated, where it is refused, and what is told to be quoted. DU-7"""

import pytest

from tests.formats.conftest import Complaints, Reader
from tests.formats.test_flows_run import World, well


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


@pytest.mark.parametrize("word", ["basename", "ext"])
def test_what_a_file_would_have_in_python_is_told_with_what_to_write(
    read: Reader, complaints: Complaints, word: str
) -> None:
    jobs = "jobs:\n  a: {run: x, files: {t: t.fq}}\n  b: {run: x, env: {N: '${{ EXPRESSION }}'}}\n"
    [said] = complaints(jobs.replace("EXPRESSION", f"jobs.a.files.t.{word}"))
    assert f"`jobs.a.files.t` is a file and has no `{word}`" in said
    assert "without its ending `jobs.a.files.t.stem`" in said
    for expression, hint in (
        (f"f.{word}", "`f.stem`"),
        (f"f.{word} + '.bam'", "`x.stem`"),
    ):
        loop = jobs.replace("b: {", 'b: {for-each: {f: "${{ [jobs.a.files.t] }}"}, ').replace("'${{", '"${{')
        world = World(read(loop.replace("}}'", '}}"').replace("EXPRESSION", expression)), well)
        assert world.end is not None and world.end.fault is not None
        assert hint in world.end.fault.message
    world = World(read(jobs.replace("EXPRESSION", "jobs.a.files.t.stem")), well)
    assert world.ran[-1].env["N"] == "t"


def test_an_expression_in_braces_is_told_to_be_quoted(complaints: Complaints) -> None:
    [said] = complaints("jobs:\n  a: {for-each: [1], inputs: {in.txt: ${{ item }}}, run: x}\n")
    assert 'inside braces an expression must be in quotes, such as {in.txt: "${{ item }}"}' in said


@pytest.mark.parametrize("given", ["${{ jobs.a.files.t }}", "${{ jobs.a.files.t }}/"])
def test_files_of_another_job_need_a_place(complaints: Complaints, given: str) -> None:
    [said] = complaints(
        f'jobs:\n  a: {{for-each: [1], run: x, files: {{t: t.txt}}}}\n  b:\n    inputs: "{given}"\n    run: x\n'
    )
    assert 'did you mean `{parts/: "${{ jobs.a.files.t }}"}`?' in said


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("echo {{ inputs.x }}", "${{ inputs.x }}"),
        ("echo ${inputs.x}", "${{ inputs.x }}"),
        ("echo $inputs.x", "${{ inputs.x }}"),
        ("echo {inputs.x}", "${{ inputs.x }}"),
        ("cat {{ jobs.b.files.t }}", "${{ jobs.b.files.t }}"),
        ("sort {wildcards.sample}.txt", "${{ sample }}"),
        ("sort {{ sample }}.txt", "${{ sample }}"),
    ],
)
def test_a_value_in_other_signs_is_not_left_to_the_shell(complaints: Complaints, command: str, meant: str) -> None:
    head = "inputs: {x: 1}\njobs:\n  b: {run: y, files: {t: t.txt}}\n"
    [said] = complaints(f"{head}  a:\n    for-each: {{sample: [1]}}\n    run: |\n      {command}\n")
    assert said.startswith("6:10: the shell gets") and f"a value of the flow is `{meant}`" in said


@pytest.mark.parametrize(
    "command",
    [
        "docker ps --format '{{ .Names }}'",
        "echo {{ other }} ${inputs} {inputs} $${{ inputs.x }}",
        "awk '{inputs.y}' ${HOME} | jq '{input: .}'",
        "echo '${{ inputs.x }}'",
    ],
)
def test_signs_of_other_programs_stay(read: Reader, command: str) -> None:
    read(f"inputs: {{x: 1}}\njobs:\n  a:\n    run: |\n      {command}\n")


@pytest.mark.parametrize(
    ("declared", "hint"),
    [
        ("a", 'is a string; declare it as a list (did you mean `samples: ["a"]`?)'),
        ("3", "is a number; declare it as a list (did you mean `samples: [3]`?)"),
        ("samples/*.txt", "(did you mean `samples: {type: files, default: samples/*.txt}`?)"),
        ("{type: string}", "is a string; declare it as a list"),
        ("{type: file}", "is a file; declare it as a list"),
    ],
)
def test_a_loop_over_an_input_that_is_no_list_is_a_problem(complaints: Complaints, declared: str, hint: str) -> None:
    loop = 'for-each: {sample: "${{ inputs.samples }}"}'
    [said] = complaints(f"inputs:\n  samples: {declared}\njobs:\n  a:\n    {loop}\n    run: x\n")
    assert said.startswith("5:24: a loop goes over a list, and the input `samples`") and hint in said


@pytest.mark.parametrize("loop", ["${{ inputs.samples }}", "{s: '${{ inputs[\"samples\"] }}'}"])
def test_an_input_of_no_type_that_a_loop_goes_over_is_a_list(read: Reader, loop: str) -> None:
    flow = read(f"inputs: {{samples: , other: }}\njobs:\n  a:\n    for-each: {loop}\n    run: x\n")
    assert flow.inputs["samples"].type == "list" and flow.inputs["other"].type == ""
