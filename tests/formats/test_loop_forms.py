"""Loops as people write them: names for the elements, products, tolerance, and files gathered in order."""  # DU-3

from pathlib import Path

import pytest

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Parallel
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import Value
from mendflow.formats.check import check
from mendflow.formats.python.loader import load_python
from tests.formats.conftest import Complaints, Reader
from tests.formats.test_flows_run import World, digest_of, failing, well

INSIDE = (
    "the loop `a` has several jobs inside, and `collect:` says what it gives of them: write "
    '`for-each: {{s: ..., collect: "${{{{ jobs.{} }}}}"}}` there, and `${{{{ jobs.a.outputs }}}}` here'
)
ASKED_OF_A = {
    "files.stats": "gc.files.stats",
    "files.fq": "trim.files.fq",
    "outputs": "gc.files.stats",
    "outputs.n": "gc.outputs.n",
    "outputs.trim.files.fq": "trim.files.fq",
    "gc.files.stats": "gc.files.stats",
    "jobs.trim.outputs.n": "trim.outputs.n",
}


@pytest.mark.parametrize(
    ("loop", "did"),
    [
        ("{sample: [a, b]}", ["a- 0", "b- 1"]),
        ("{sample: '${{ inputs.samples }}'}", ["p- 0", "q- 1"]),
        ("{sample: [a, b], other: [1, 2]}", ["a-1 0", "a-2 1", "b-1 2", "b-2 3"]),
        ("{sample: [a, b], other: [1, 2], zip: true}", ["a-1 0", "b-2 1"]),
        ("{sample: [], other: [1, 2]}", []),
        ("{sample: [a, b, c], max-parallel: 1, in: sequence}", ["a- 0", "b- 1", "c- 2"]),
        ("{items: [a, b], as: sample}", ["a- 0", "b- 1"]),
        ("{from: 3, to: 4, as: sample}", ["3- 0", "4- 1"]),
        ("{sample: {from: 0, to: 1}, other: {from: 8, to: 9}}", ["0-8 0", "0-9 1", "1-8 2", "1-9 3"]),
        ("{sample: {from: 5, to: 1, step: -2}}", ["5- 0", "3- 1", "1- 2"]),
        ("{sample: {from: 1, to: '${{ size(inputs.samples) }}'}}", ["1- 0", "2- 1"]),
        ("{sample: '${{ range(2) }}', other: [1]}", ["0-1 0", "1-1 1"]),
    ],
)
def test_a_loop_goes_over_what_its_names_say(read: Reader, loop: str, did: list[str]) -> None:
    other = "${{ other }}" if "other" in loop else ""
    text = "inputs: {samples: [p, q]}\njobs:\n  a: {for-each: LOOP, run: '${{ sample }}-OTHER ${{ index }}'}\n"
    world = World(read(text.replace("LOOP", loop).replace("OTHER", other)), well)
    assert [spec.command for spec in world.ran] == did


GATHER = """
jobs:
  a: {for-each: {n: LIST}, run: x, files: {x: NAME}}
  b: {run: "cat parts/*", inputs: {parts/: "${{ jobs.a.files.x }}"}}
"""


@pytest.mark.parametrize("folder", ["./", ".", "././"])
def test_the_files_of_a_loop_may_stand_in_the_job_s_own_folder(read: Reader, tmp_path: Path, folder: str) -> None:
    text = GATHER.replace("LIST", "[0, 1]").replace("NAME", "'out-${{ n }}.txt'")
    world = World(read(text.replace("parts/:", f"{folder}:").replace("parts/*", "out*")), well)
    assert list(world.ran[-1].inputs) == ["out-0.txt", "out-1.txt"]
    (tmp_path / "flow.py").write_text(f"""
from mendflow import flow, job, shell

@job(files={{"x": "out.txt"}})
def part(n): ...

@flow
def gather(numbers: list = [3, 1]):
    return shell("cat out*", inputs={{"{folder}": part.map(numbers).file("x")}})
""")
    world = World(load_python(tmp_path / "flow.py")["gather"], well)
    assert list(world.ran[-1].inputs) == ["0-out.txt", "1-out.txt"]


@pytest.mark.parametrize("given", ['{./: "data/*", a.txt: b.txt}', '{a.txt: b.txt, ./: "data/"}'])
def test_files_beside_the_flow_that_would_stand_at_one_place_are_refused(
    read: Reader, tmp_path: Path, given: str
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("data/a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    with pytest.raises(BadFlow, match=r"two of its inputs are to stand at `a.txt`"):
        read(f"jobs:\n  a: {{run: x, inputs: {given}}}\n")


@pytest.mark.parametrize(
    ("count", "name", "parts"),
    [
        (3, "out.txt", ["0-out.txt", "1-out.txt", "2-out.txt"]),
        (12, "out.txt", [f"{n:02}-out.txt" for n in range(12)]),
        (3, "'out-${{ n }}.txt'", ["out-0.txt", "out-1.txt", "out-2.txt"]),
        (12, "'out-${{ n }}.txt'", [f"out-{n}.txt" for n in range(12)]),
        (0, "out.txt", []),
    ],
)
def test_the_files_of_a_loop_stand_in_a_folder_in_its_order(
    read: Reader, count: int, name: str, parts: list[str]
) -> None:
    world = World(read(GATHER.replace("LIST", str(list(range(count)))).replace("NAME", name)), well)
    assert world.outputs() == {}
    gathered = world.ran[-1].inputs
    assert list(gathered) == [f"parts/{part}" for part in parts]
    assert [file.sha256 for file in gathered.values()] == [digest_of(f"a[{n}]/x") for n in range(count)]


@pytest.mark.parametrize(
    ("body", "files"),
    [
        ("{run: x, files: {x: f}}", ["a[0]/x", "a[1]/x"]),
        ("{steps: [one, {name: last, run: x, files: {x: f}}]}", ["last[0]/x", "last[1]/x"]),
        ("{run: x, files: {x: f}, compensation: y}", ["a[0]/x", "a[1]/x"]),
        ("{stage: {x: flow.txt}}", ["flow.txt", "flow.txt"]),
    ],
)
def test_files_are_those_of_the_job_or_of_the_last_step(
    read: Reader, tmp_path: Path, body: str, files: list[str]
) -> None:
    (tmp_path / "flow.txt").write_text("x")
    text = f"jobs:\n  a:\n    for-each: {{s: [1, 2]}}\n    <<: {body}\noutputs: {{f: '${{{{ jobs.a.files.x }}}}'}}\n"
    assert [each["$file"] for each in World(read(text), well).outputs()["f"]] == [digest_of(file) for file in files]


def test_collect_takes_a_map(read: Reader) -> None:
    collect = "{s: '${{ s }}', did: 'it ${{ jobs.a.outputs.did }}', file: '${{ jobs.a.files.x.name }}', one: 1}"
    text = "jobs: {a: {for-each: {s: [p, q], collect: MAP}, run: x, files: {x: f}}}\n"
    text += "outputs: {all: '${{ jobs.a.outputs }}'}"
    flow = read(text.replace("MAP", collect))
    expected = [{"s": s, "did": "it x", "file": "f", "one": 1} for s in "pq"]
    assert World(flow, well).outputs() == {"all": expected}


@pytest.mark.parametrize(
    ("tolerate", "failed", "outputs"),
    [
        ("1", ["a[1]"], [0, None, 2, 3]),
        ("25 %", ["a[1]"], [0, None, 2, 3]),
        ("25%", [], [0, 1, 2, 3]),
        ("'${{ 1 + 1 }}'", ["a[0]", "a[3]"], [None, 1, 2, None]),
        ("100 %", ["a[0]", "a[1]", "a[2]", "a[3]"], [None] * 4),
        ("0", ["a[2]"], None),
        ("24 %", ["a[2]"], None),
        ("1", ["a[0]", "a[3]"], None),
    ],
)
@pytest.mark.parametrize("on_failure", ["finish", "stop"])
def test_so_many_iterations_may_fail_and_no_more(
    read: Reader, tolerate: str, failed: list[str], outputs: list[Value] | None, on_failure: str
) -> None:
    order = "sequence" if on_failure == "stop" else "parallel"
    text = f"""
jobs:
  a:
    for-each: {{n: [0, 1, 2, 3], tolerate: {tolerate}, on-failure: {on_failure}, in: {order}, collect: n}}
    run: x
    files: {{f: f}}
outputs: {{n: "${{{{ jobs.a.outputs }}}}", f: "${{{{ jobs.a.files.f }}}}"}}
"""
    world = World(read(text), failing(*failed))
    assert world.end is not None
    if outputs is not None:
        assert world.items == [f"a[{n}]" for n in range(4)], "all run"
        assert world.outputs()["n"] == outputs
        assert [file is not None for file in world.outputs()["f"]] == [n is not None for n in outputs]
    else:
        assert world.end.status == "failed" and world.end.fault is not None
        assert world.end.fault.exit_code == 3
        if on_failure == "finish":
            assert world.end.fault.message.startswith(f"a: {len(failed)} of 4 iterations failed, ")


def test_zipped_lists_of_two_lengths_are_a_fault_that_names_both(read: Reader) -> None:
    world = World(read("jobs: {a: {for-each: {x: [1], y: '${{ [1, 2] }}', zip: true}, run: x}}"), well)
    assert world.end is not None and world.end.fault is not None
    assert "`x` has 1, `y` has 2 elements" in world.end.fault.message


@pytest.mark.parametrize(
    ("files", "declared"),
    [
        ("merged.txt", {"merged.txt": "merged.txt"}),
        ("[a.txt, out/b.txt]", {"a.txt": "a.txt", "out/b.txt": "out/b.txt"}),
        ("{m: merged.txt}", {"m": "merged.txt"}),
        ("{m: '${{ inputs.n }}.txt'}", {"m": "${{ inputs.n }}.txt"}),
        ("[]", {}),
    ],
)
def test_files_are_declared_by_names_or_by_their_paths(read: Reader, files: str, declared: dict[str, str]) -> None:
    body = read(f"inputs: {{n: a}}\njobs:\n  a: {{run: x, files: {files}}}\n").body
    assert isinstance(body, Parallel) and isinstance(body.branches[0], JobActivity)
    assert body.branches[0].files == declared


@pytest.mark.parametrize(
    ("default", "said"),
    [
        ("samples/*.txt", ""),
        ("[a.txt, 'b*.txt']", ""),
        ("3", "the default of a files must be a path with or without `*`, or a list of such, not the number 3"),
        ("[1]", "the default of a files must be a path with or without `*`, or a list of such, not a list"),
    ],
)
def test_an_input_of_files_is_a_pattern_or_several(tmp_path: Path, default: str, said: str) -> None:
    (tmp_path / "f.yaml").write_text(f"inputs: {{s: {{type: files, default: {default}}}}}\njobs: {{a: x}}\n")
    assert [each.message for each in check([tmp_path / "f.yaml"])] == ([said] if said else [])


def test_a_called_flow_is_given_its_files(tmp_path: Path, complaints: Complaints) -> None:
    (tmp_path / "sub.yaml").write_text("inputs: {s: {type: files, default: '*.txt'}}\njobs: {a: x}\n")
    assert complaints("jobs: {a: {call: sub.yaml}}") == ["1:11: the flow `sub` needs the input `s` under `with:`"]


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        (
            "a: {for-each: [1], run: x, files: {x: f}}\n  b: {run: y, inputs: {one: '${{ jobs.a.files.x }}'}}",
            "3:24: `jobs.a.files.x` is a list of files, one for each iteration, and `one` is one file "
            "(did you mean `one/`, a folder of them?)",
        ),
        (
            "a: {for-each: [1], run: x, files: {x: f}}\n"
            "  b: {for-each: [1], run: y, inputs: {one: '${{ jobs.a.files.x }}'}}",
            "3:39: `jobs.a.files.x` is a list of files, one for each iteration, and `one` is one file "
            "(did you mean `${{ jobs.a.files.x[index] }}`, that of the same element (or both under the `jobs:` of one "
            "`for-each`; `one/` is a folder of all)?)",
        ),
        (
            "a: {for-each: [1], run: x, files: {table: f}}\n  b: {run: y, inputs: {p/: '${{ jobs.a.files.tabel }}'}}",
            "3:33: `a` leaves no file `tabel`; name it under its `files:` (did you mean `table`?)",
        ),
        (
            "a: {for-each: [1], steps: [x]}\n  b: {run: y, inputs: {p/: '${{ jobs.a.files.t }}'}}",
            "3:33: `a` leaves no files: the last of its steps is no job with `files:`",
        ),
        *(
            (
                "a:\n    for-each: {s: [1]GATHERED}\n    jobs:\n      trim: {run: x, files: {fq: f}}\n"
                "      gc: {run: x, files: {stats: f}}\n  b: {run: y, inputs: {p/: '${{ ASKED }}'}}".replace(
                    "ASKED", asked
                ).replace("GATHERED", gathered),
                f"7:33: {told}",
            )
            for asked, gathered, told in (
                *((f"jobs.a.{asked}", "", INSIDE.format(path)) for asked, path in ASKED_OF_A.items()),
                ("jobs.gc.files.stats", "", f"`jobs.gc` cannot be seen here: {INSIDE.format('gc.files.stats')}"),
                (
                    "jobs.a.files.stats",
                    ", collect: '${{ jobs.gc.files.stats }}'",
                    "the loop `a` gives what its `collect:` says, as the list `${{ jobs.a.outputs }}`",
                ),
                (
                    "jobs.trim.files.fq",
                    ", collect: '${{ jobs.gc.files.stats }}'",
                    "`jobs.trim` cannot be seen here: the loop `a` gives what its `collect:` says, as the list "
                    '`${{ jobs.a.outputs }}`; for this write `collect: "${{ jobs.trim.files.fq }}"` there',
                ),
            )
        ),
        (
            "a: {run: x, files: {table: f}}\n  b: {run: 'y ${{ jobs.a.files.nope.name }}'}",
            "3:19: `a` leaves no file `nope`; name it under its `files:`",
        ),
        (
            "a: {call: other}\n  b: {run: 'y ${{ jobs.a.files.f }}'}",
            "3:19: `a` leaves no files; a called flow hands them on among its outputs",
        ),
        (
            "a: {for-each: [1], run: x, files: {f: f}}\n  b: {run: 'y ${{ jobs.a.files.f.name }}'}",
            "3:19: `jobs.a.files.f` is a list, one for each iteration, and has no `name` "
            "(did you mean `jobs.a.files.f.map(f, f.name)`?)",
        ),
        (
            "a: {for-each: [1], run: x}\n  b: {run: 'y ${{ jobs.a.outputs.n }}'}",
            "3:19: `jobs.a.outputs` is a list, one for each iteration, and has no `n` "
            "(did you mean `jobs.a.outputs.map(o, o.n)`?)",
        ),
        (
            "a: {run: x, files: m.txt}\n  b: {run: 'y ${{ jobs.a.files.m.txt.name }}'}",
            "3:19: a name with a dot stands in brackets: `a` leaves the file `m.txt` "
            "(did you mean `jobs.a.files['m.txt']`?)",
        ),
        ("a: {run: x, files: '${{ 1 }}.txt'}", "2:22: a file whose path is worked out needs a name of its own"),
        ("a: {run: x, files: [a, ../b]}", "2:26: `../b` must be a path inside the job's folder"),
        ("a: {run: x, files: [a, a]}", "2:26: `a` is in the list already"),
        ("a: {for-each: {sample: 3}, run: x}", "2:26: a list is expected here"),
        ("a: {for-each: {sample: 'x ${{ 1 }}'}, run: x}", "2:26: a list is expected here"),
        ("a: {for-each: {sample: {x: 1}}, run: x}", "2:26: a list is expected here"),
        ("a: {for-each: {colect: [1]}, run: x}", "2:18: `for-each` has no key `colect` (did you mean `collect`?)"),
        ("a: {for-each: {s: [1], max_parallel: 2}, run: x}", "2:26: `for-each` has no key `max_parallel`"),
        ("a: {for-each: {inputs: [1]}, run: x}", "`inputs` means something in expressions already"),
        ("a: {for-each: {s: [1], as: t}, run: x}", "2:26: `as` goes with `items`; the element is called `s` already"),
        ("a: {for-each: {s: [1], zip: true}, run: x}", "2:26: `zip` is for two or more lists with names"),
        ("a: {for-each: {s: [1], t: [1, 2], zip: true}, run: x}", "2:17: lists that are zipped must be of one length"),
        ("a: {for-each: {s: [1], tolerate: 0.1}, run: x}", "is expected here, not 0.1 (did you mean `10 %`?)"),
        ("a: {for-each: {s: [1], tolerate: 101 %}, run: x}", "2:36: a number of iterations, a part such as `10 %`"),
        ("a: {for-each: {s: [1], tolerate: 1, min-success: 1}, run: x}", "2:26: `tolerate` lets all iterations run"),
        ("a: {for-each: {max-parallel: 2}, run: x}", "2:17: `for-each` goes over lists with names"),
    ],
)
def test_what_cannot_work_is_told_before_anything_runs(complaints: Complaints, jobs: str, said: str) -> None:
    found = complaints(f"jobs:\n  {jobs}\n")
    assert len(found) == 1 and said in found[0], found


def test_flows_from_elsewhere_are_asked_the_same_when_they_are_compiled() -> None:
    turn = JobActivity(name="a.iteration", command="x", files={"x": "f"})
    loop = ForEach(name="a", body=turn, items=[1])
    asks = JobActivity(name="b", command="y", inputs={"p": "${{ jobs.a.files.x }}"})
    body = Parallel(name="p", branches=(loop, asks))
    with pytest.raises(BadFlow, match="b: `a` leaves no files"):
        compile_flow(Flow(name=FlowName("f"), body=body))


def test_files_of_a_mapped_job_in_python_are_a_list_in_order(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("""
from mendflow import flow, job, shell

@job(files={"x": "out.txt"})
def part(n): ...

@flow
def gather(numbers: list = [3, 1, 2]):
    parts = part.map(numbers)
    return shell("cat parts/*", inputs={"parts/": parts.file("x")})
""")
    flows = load_python(tmp_path / "flow.py")
    world = World(flows["gather"], well)
    assert list(world.ran[-1].inputs) == ["parts/0-out.txt", "parts/1-out.txt", "parts/2-out.txt"]


def test_a_loop_over_a_job_that_writes_to_a_url_gathers_none_of_that_file(read: Reader) -> None:  # FM-2
    flow = read(
        "jobs:\n  a:\n    for-each: {n: [1, 2]}\n    run: x\n    files: {x: o, y: p}\n"
        "    publish: {x: {to: 'file:///data/${{ n }}'}}\n"
    )
    (loop,) = [each for each in (flow.body.branches if isinstance(flow.body, Parallel) else [flow.body])]
    assert isinstance(loop, ForEach) and list(loop.collect_files) == ["y"]
