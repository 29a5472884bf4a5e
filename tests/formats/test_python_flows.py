"""Flows in Python: functions stay functions, and a flow's function becomes the model."""  # FM-2: the native format

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Call, Flow, ForEach, Input, JobActivity, Parallel
from mendflow.core.model.jobs import Submission
from mendflow.core.model.values import FileRef
from mendflow.formats import load
from mendflow.formats.python.loader import load_python
from mendflow.formats.python.sources import code_files, functions_of, with_code

WORK = """
from mendflow import flow, job, shell

@job
def split(text: str) -> list[str]:
    return text.split()

@job(cpus=2, memory="1 GB", retries=2)
def length(word: str, factor: int = 1) -> int:
    return len(word) * factor

@job
def total(numbers: list[int], rows: int = 0) -> dict[str, int]:
    return {"sum": sum(numbers), "rows": rows}
"""


class Written:
    """A Python file with WORK at its top, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "work.py"

    def flow(self, body: str, name: str = "") -> Flow:
        self.path.write_text(WORK + body)
        flow = load(self.path, name)
        compile_flow(flow)
        return flow

    def complaint(self, body: str) -> str:
        self.path.write_text(WORK + body)
        with pytest.raises(BadFlow) as caught:
            load(self.path)
        (problem,) = caught.value.problems
        assert problem.file == str(self.path)
        line = (WORK + body).split("\n")[problem.line - 1].strip() if problem.line else ""
        return f"{line} | {problem.message}" + (f" ({problem.suggestion})" if problem.suggestion else "")


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def branches(flow: Flow) -> dict[str, object]:
    assert isinstance(flow.body, Parallel)
    return {each.name: each for each in flow.body.branches}


def test_a_call_becomes_a_job_and_its_result_a_need(written: Written) -> None:
    flow = written.flow("""
@flow
def count(text: str, n: int = 3) -> dict[str, int]:
    "Count things."
    words = split(text)
    return {"all": total(words, rows=n)["sum"], "first": words[0]}
""")
    assert flow.name == "count"
    assert flow.description == "Count things."
    assert flow.inputs == {"text": Input(type="string", required=True), "n": Input(type="number", default=3)}
    assert flow.outputs == {"all": "${{ jobs.total.outputs.sum }}", "first": "${{ jobs.split.outputs[0] }}"}
    job = branches(flow)["total"]
    assert isinstance(job, JobActivity)
    assert (job.args, job.kwargs) == (("${{ jobs.split.outputs }}",), {"rows": "${{ inputs.n }}"})
    assert (job.targets, job.join) == (("split->total",), "all")
    assert job.function is not None
    assert (job.function.module, job.function.name) == ("work", "total")
    assert job.function.folder == str(written.path.parent)
    assert code_files(flow) == {"work": written.path}


def test_map_becomes_a_loop(written: Written) -> None:
    flow = written.flow("""
@flow
def count(text: str):
    return total(length.options(max_parallel=5).map(split(text), factor=2))
""")
    loop = branches(flow)["length"]
    assert isinstance(loop, ForEach)
    assert loop.items == "${{ jobs.split.outputs }}"
    assert loop.max_parallel == 5
    assert loop.collect == Expr("jobs.`length.iteration`.outputs")
    assert isinstance(loop.body, JobActivity)
    assert (loop.body.name, loop.body.label) == ("length.iteration", "length")
    assert (loop.body.args, loop.body.kwargs) == (("${{ item }}",), {"factor": 2})
    assert (loop.body.resources.cpus, loop.body.resources.memory_bytes, loop.body.retries) == (2, 1_000_000_000, 2)
    assert flow.outputs == {"result": "${{ jobs.total.outputs }}"}


def test_a_call_of_another_flow_is_a_call(written: Written) -> None:
    flow = written.flow(
        """
@flow
def inner(words: list, n: int = 1):
    return length.map(words)

@flow
def outer(text: str):
    return total(inner(split(text)))
""",
        "outer",
    )
    call = branches(flow)["inner"]
    assert isinstance(call, Call)
    assert (call.flow, call.inputs) == ("inner", {"words": "${{ jobs.split.outputs }}"})
    assert [each.name for each in flow.calls] == ["inner"]
    job = branches(flow)["total"]
    assert isinstance(job, JobActivity)
    assert job.args == ("${{ jobs.inner.outputs.result }}",)


def test_shell_jobs_take_handles_in_their_text(written: Written) -> None:
    flow = written.flow("""
@flow(on_failure="stop", env={"LANG": "C"})
def count(text: str):
    made = shell(f"echo {split(text)[0]} > out.txt", files={"out": "out.txt"}, time="5 min", submit="poll")
    return shell("wc out.txt", name="count-it", inputs={"out.txt": made.file("out")}, env={"N": made["n"]})
""")
    assert isinstance(flow.body, Parallel)
    assert flow.body.on_fault == "stop"
    jobs = branches(flow)
    first, second = jobs["shell"], jobs["count-it"]
    assert isinstance(first, JobActivity) and isinstance(second, JobActivity)
    assert first.command == "echo ${{ jobs.split.outputs[0] }} > out.txt"
    assert (first.resources.wall_ms, first.submission) == (300_000, Submission.POLL)
    assert first.targets == ("split->shell",)
    assert second.inputs == {"out.txt": "${{ jobs.shell.files.out }}"}
    assert second.env == {"LANG": "C", "N": "${{ jobs.shell.outputs.n }}"}
    assert second.targets == ("shell->count-it",)


def test_order_and_conditions_are_options(written: Written) -> None:
    flow = written.flow("""
@flow
def count(text: str, n: int = 1):
    words = split(text)
    lengths = length.map(words)
    total.options(name="big", when=f"{words['size']} > 3 && {n} == 1", after=[lengths])([1])
    total.options(name="late", needs=[lengths])([1])
""")
    jobs = branches(flow)
    big, late = jobs["big"], jobs["late"]
    assert isinstance(big, JobActivity) and isinstance(late, JobActivity)
    assert big.when == Expr("(jobs.split.outputs.size) > 3 && (inputs.n) == 1")
    assert big.targets == ("split->big", "length->big")
    assert big.join == Expr("links['split->big']")
    assert late.targets == ("length->late",)


def test_a_job_called_twice_has_two_names(written: Written) -> None:
    flow = written.flow("@flow\ndef count(text: str):\n    return [split(text), split(text)]\n")
    assert list(branches(flow)) == ["split", "split-2"]
    assert flow.outputs == {"result": ["${{ jobs.split.outputs }}", "${{ jobs.split-2.outputs }}"]}


def test_outside_a_flow_everything_is_plain_python(written: Written) -> None:
    body = "@flow\ndef count(text: str):\n    return total(length.map(split(text), factor=2))\n"
    written.path.write_text(WORK + body)
    script = (
        "import work, json; print(json.dumps([work.length('abc'), work.length.map(['a', 'bb']), work.count('a bb')]))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=written.path.parent, capture_output=True, check=True)
    assert json.loads(done.stdout) == [3, [1, 2], {"sum": 6, "rows": 0}]


def test_the_model_is_plain_data(written: Written) -> None:
    flow = written.flow("@flow\ndef count(text: str = 'a b', more: list = [1, (2, 3)]):\n    split(text)\n")
    assert msgspec.json.decode(msgspec.json.encode(flow), type=Flow) == flow
    assert flow.inputs["more"].default == [1, [2, 3]]
    assert flow.outputs == {}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("for word in split(text): pass", "it cannot be iterated; job.map("),
        ("if split(text): pass", "it cannot be tested; use job.options(when="),
        ("len(split(text))", "has no length; take it inside a job"),
        ("if split(text) == 'a': pass", "it cannot be tested; use job.options(when="),
        ("'a' in split(text)", "cannot be searched"),
        ("split(text)()", "cannot be called"),
        ("split(text)[1.5]", "a part of a value has a name or a number"),
        ("split(text)['a'].file('x')", "is not a job, and leaves no files"),
        ("split(object())", "argument 1 of split: it is a object, which has no form as data"),
        ("split({1: [len]})", "argument 1 of split: its [1][0] is a builtin_function_or_method"),
        ("split(b'x' * 20_000)", "argument 1 of split: it is a bytes that is too large to stand in the flow itself"),
        ("split()", "split(): missing a required argument: 'text'"),
        ("split(text, what=1)", "split(): got an unexpected keyword argument 'what'"),
        ("length.map(3)", "map goes over a list"),
        ("length.map('abc')", "map goes over a list"),
        ("split.options(cpu=2)(text)", "a job has no option `cpu`; how many CPUs it needs is cpus=4"),
        ("split.options(memory=2)(text)", "memory is a size such as 512 MiB, 2 GB, not 2"),
        ("split.options(memory='auto up to 2')(text)", "memory: '2' is not a size that can be a bound"),
        ("split.options(disk='auto')(text)", "disk is a size such as 512 MiB, 2 GB, not 'auto'"),
        ("split.options(time='soon')(text)", "time is a duration such as"),
        ("split.options(retries=-1)(text)", "retries is a whole number from 0 on"),
        ("split.options(submit='later')(text)", "submit is one of wait, poll, notify, forget"),
        ("split.options(name='a b')(text)", "'a b' is not a name for a job"),
        ("split.options(when='1 +')(text)", "when `1 +`: the expression ends too early"),
        ("split.options(needs=[3])(text)", "needs and after take what jobs gave"),
        ("shell('')", "a command is a text"),
        ("shell('echo ${{ jobs.nope.outputs }}')", "`shell` uses `jobs.nope`, which this flow does not have"),
        ("count(text)", "the flow `count` calls itself"),
        ("pass", "the flow `count` has no jobs"),
        ("1 / 0", "ZeroDivisionError while the file was read: division by zero"),
    ],
)
def test_what_cannot_be_known_yet_is_told_with_its_line(written: Written, body: str, said: str) -> None:
    found = written.complaint(f"@flow\ndef count(text: str):\n    {body}\n")
    assert said in found
    if body != "pass":
        assert found.startswith(body)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "@flow\ndef count(text=object()):\n    split('a')\n",
            "the default of `text`: it is a object, which has no form as data",
        ),
        (
            "@flow\ndef count(*texts):\n    split('a')\n",
            "the flow count takes its inputs by name; `*texts` cannot be one",
        ),
        ("@job(cpu=1)\ndef f(): pass\n", "a job has no option `cpu`; how many CPUs it needs is cpus=4"),
        ("@job\nasync def f(): pass\n", "the job `f` is a generator or async"),
        ("x = = 1\n", "this is not Python: invalid syntax"),
        ("raise SystemExit(3)\n", "SystemExit while the file was read: 3"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError while the file was read"),
        ("x = 1\n", "this file has no flow; mark a function with @flow"),
        (
            "@flow\ndef a(text: str):\n    split(text)\n@flow\ndef b(text: str):\n    split(text)\n",
            "this file has several flows; choose one, as",
        ),
        ("@flow\ndef a():\n    @job\n    def inner(): pass\n    inner()\n", "is defined inside another function"),
    ],
)
def test_a_bad_file_is_refused_with_a_sentence(written: Written, text: str, said: str) -> None:
    assert said in written.complaint(text)


def test_a_flow_of_several_is_named_after_a_colon(written: Written) -> None:
    body = "@flow\ndef a(text: str):\n    split(text)\n@flow(name='two')\ndef b(text: str):\n    split(text)\n"
    written.path.write_text(WORK + body)
    assert load(f"{written.path}:two").name == "two"
    assert list(load_python(written.path)) == ["a", "two"]
    with pytest.raises(BadFlow, match="there is no flow `tow` in this file"):
        load(f"{written.path}:tow")


def test_every_problem_of_a_file_is_told_with_its_line_and_column(written: Written) -> None:
    body = """
@job(cpu=1, memry="1 GB")
def odd(): pass

@flow
def one(text: str):
    words = split()
    length.map(3); split.options(retries=-1)(words)
    total(words)

@flow
def two(text: str):
    odd()
    split(text, wrong=1)
    undefined(text)

@flow
def three(text: str):
    return 1 / 0
"""
    written.path.write_text(WORK + body)
    with pytest.raises(BadFlow) as caught:
        load_python(written.path)
    first = WORK.count("\n") + 1
    told = [(each.line - first + 1, each.column, each.message.partition(":")[0][:30]) for each in caught.value.problems]
    assert told == [
        (2, 2, "a job has no option `cpu`; how"),
        (2, 2, "a job has no option `memry`"),
        (7, 13, "split()"),
        (8, 5, "map goes over a list, or over "),
        (8, 20, "retries is a whole number from"),
        (14, 5, "split()"),
        (19, 12, "ZeroDivisionError while the fi"),
    ]


def test_a_flow_that_is_named_is_taken_whatever_is_wrong_beside_it(written: Written) -> None:
    body = "@job(cpu=1)\ndef odd(): pass\n@flow\ndef good(text: str):\n    split(text)\n"
    written.path.write_text(WORK + body + "@flow\ndef other(text: str):\n    odd()\n    split()\n")
    assert load(f"{written.path}:good").name == "good"
    with pytest.raises(BadFlow) as caught:
        load(f"{written.path}:other")
    assert [each.message.partition(":")[0] for each in caught.value.problems] == [
        "a job has no option `cpu`; how many CPUs it needs is cpus=4",
        "split()",
    ]


def test_whoever_imports_a_file_hears_of_a_mistake_at_once(written: Written) -> None:
    with pytest.raises(BadFlow, match="a job has no option `cpu`"):
        exec(compile("from mendflow import job\n@job(cpu=1)\ndef f(): pass\n", "x.py", "exec"), {})


def test_a_yaml_flow_calls_a_python_flow(written: Written, tmp_path: Path) -> None:
    written.path.write_text(WORK + "@flow\ndef count(text: str):\n    return split(text)\n")
    (tmp_path / "outer.yaml").write_text("steps:\n  - {name: c, call: 'work.py:count', with: {text: a b}}\n")
    flow = load(tmp_path / "outer.yaml")
    assert [each.name for each in flow.calls] == ["count"]
    assert code_files(flow) == {"work": written.path}


def test_a_module_beside_the_file_is_found(written: Written, tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("from mendflow import job\n@job\ndef far(n: int) -> int:\n    return n\n")
    flow = written.flow("from beside_it import far\n@flow\ndef count():\n    return far(1)\n")
    job = branches(flow)["far"]
    assert isinstance(job, JobActivity)
    assert job.function is not None
    assert (job.function.module, job.function.folder) == ("beside_it", str(tmp_path))


def test_the_source_of_every_function_can_be_kept_with_the_flow(written: Written) -> None:
    body = (
        "@flow\ndef inner(n: int):\n    split('a')\n@flow\ndef outer(n: int):\n    length.map([1, 2])\n    inner(n)\n"
    )
    flow = written.flow(body, "outer")
    kept = FileRef(sha256="abc", bytes=3, name="work.py")
    deployed = with_code(flow, {written.path: kept})
    assert [each.name for each in functions_of(flow)] == ["split", "length"]
    assert [each.code for each in functions_of(flow)] == [None, None]
    assert [each.code for each in functions_of(deployed)] == [kept, kept]
    assert with_code(flow, {}) == flow
