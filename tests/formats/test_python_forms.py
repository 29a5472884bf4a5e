"""Flows in Python as people write them: loops, conditions, retries, people, calls. Each form gives the model that the
same thing in YAML gives, and a whole flow gives what the same functions give in plain Python."""  # DU-3, DU-7

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Call, ForEach, JobActivity, UserTask
from mendflow.core.model.jobs import JobSpec, Outcome, RetryRule
from mendflow.core.model.values import Value
from mendflow.formats import load
from mendflow.formats.yaml import read_flow
from tests.formats.python_flows import Loader, job_of, module_of, parts
from tests.formats.test_flows_run import World, failing, well

INNER = """
import statistics

def plain(numbers, more=0):
    return sum(numbers) + more

@flow
def inner(n: int = 0):
    return one(n)
"""


def calling(path: Path) -> Callable[[JobSpec], Outcome]:
    """A pilot that calls the functions of a file at once."""
    module = module_of(path)

    def work(spec: JobSpec) -> Outcome:
        if spec.function is None:
            return well(spec)
        try:
            home = module if spec.function.module == "work" else importlib.import_module(spec.function.module)
            return Outcome(outputs=getattr(home, spec.function.name)(*spec.args, **spec.kwargs))
        except ArithmeticError as error:
            return Outcome(fault=Fault(name=type(error).__name__, category=Category.JOB, message=str(error)))

    return work


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("return one.map([1, 2, 3])", [2, 3, 4]),
        ("return one.map(range(3))", [1, 2, 3]),
        ("return one.map(x * x for x in (1, 2))", [2, 5]),
        ("return one.map(one.map([1, 2]))", [3, 4]),
        ("return two.map([1, 2], y=3)", [103, 203]),
        ("return two.map([1, 2], [3, 4])", [103, 204]),
        ("return two.map(one.map([0, 1]), [3, 4])", [103, 204]),
        ("return two.product(x=[1, 2], y=[3, 4])", [103, 104, 203, 204]),
        ("return two.product([1, 2], [3, 4])", [103, 104, 203, 204]),
        ("return two.product([1, 2], y=range(2))", [100, 101, 200, 201]),
        ("return two.product(x=one.map([0, 1]), y=[3])", [103, 203]),
        ("return risky.map([1, 0, 2], tolerate=1)", [10.0, None, 5.0]),
        ("return risky.map([1, 0, 2], tolerate=0.4, max_parallel=2)", [10.0, None, 5.0]),
        ('return risky.map([1, 0, 2], tolerate="34 %")', [10.0, None, 5.0]),
        ("return risky.options(tolerate=2).product(n=[0, 1])", [None, 10.0]),
        ("return total(inner.map([1, 2]))", 5),
        ("return inner.product(n=[1, 2])", [2, 3]),
        ("return inner.map([1, 2], max_parallel=1, tolerate=1)", [2, 3]),
        ("return [one(5), two(x=1)]", [6, 110]),
        ("return job(max)(one.map([1, 3, 2]))", 4),
        ("return job(max).map([1, 9], [3, 4])", [3, 9]),
        ("return job(statistics.mean)([1, 3])", 2),
        ("return job(plain).map([[1, 2], [3]], more=1)", [4, 4]),
        ("return one(one(1) + 1)", 4),
        ("return one(2 * (one(1) - 1) / 4 + 7 % 3 + 7 // 2)", 5.5),
    ],
)
def test_a_flow_gives_what_plain_python_gives(python: Loader, tmp_path: Path, body: str, result: Value) -> None:
    flow = python(body, top=INNER)
    assert World(flow, calling(tmp_path / "work.py")).outputs() == {"result": result}
    assert module_of(tmp_path / "work.py").main() == result


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a + b", 5),
        ("a - b", 9),
        ("a * b", -14),
        ("a / b", -3.5),
        ("a // b", -4),
        ("a % b", -1),
        ("b // a", -1),
        ("b % a", 5),
        ("3 - a", -4),
        ("10 // a", 1),
        ("10 % a", 3),
        ("1 / b", -0.5),
        ("-a", -7),
        ("+a", 7),
        ("abs(b)", 2),
        ("a > b", True),
        ("3 > a", False),
        ("a == 7", True),
        ("a != 7", False),
        ("(a >= 7) & (b <= -2)", True),
        ("(a > 7) | (b < 0)", True),
        ("~(a > 3)", False),
        ("~(a > 3) | (a == 7) & True", True),
        ("text + '-' + text", "x'y\"-x'y\""),
        ("text == 'x\\'y\"'", True),
        ("rows[-1]", 3),
        ("rows[0] + rows[-2]", 3),
        ("rows == [1, 2, 3]", True),
        ("who['name'] == 'Ann'", True),
        ("who == {'name': 'Ann'}", True),
        ("nothing == None", True),
        ("a * 0.5 > 3", True),
    ],
)
def test_an_expression_is_worth_what_python_says(python: Loader, expression: str, value: Value) -> None:
    given: dict[str, Any] = {
        "a": 7,
        "b": -2,
        "text": "x'y\"",
        "rows": [1, 2, 3],
        "who": {"name": "Ann"},
        "nothing": None,
    }
    inputs = ", ".join(f"{name}={each!r}" for name, each in given.items())
    flow = python(f"shell('x', name='j')\nreturn {expression}", inputs)
    assert World(flow, well).outputs() == {"result": value}
    plain = eval(expression.replace("~(a > 3)", "(not a > 3)"), given)
    assert plain == value


ITEM, X, XY = "r ${{ quote(item) }}", "r ${{ quote(x) }}", "r ${{ quote(x) }} ${{ quote(y) }}"
SAME = [
    ("for-each: {x: [1, 2], y: [3, 4]}", XY, "shell.product('r {x} {y}', x=[1, 2], y=[3, 4]"),
    ("for-each: {x: [1, 2], y: [3, 4], zip: true}", XY, "shell.map('r {x} {y}', x=[1, 2], y=[3, 4]"),
    ("for-each: {x: [1, 2]}", X, "shell.product('r {x}', x=[1, 2]"),
    (
        "for-each: {item: [1], tolerate: 10 %, max-parallel: 4}",
        ITEM,
        "shell.map('r {item}', [1], tolerate=0.1, max_parallel=4",
    ),
    (
        "for-each: {item: [1], tolerate: 3, on-failure: stop}",
        ITEM,
        "shell.map('r {item}', [1], tolerate=3, on_failure='stop'",
    ),
    ("for-each: {item: [1]}, files: out.txt", ITEM, "shell.map('r {item}', [1], files='out.txt'"),
    ("for-each: {item: [1]}, retries: {times: 2, on: 75}", ITEM, "shell.map('r {item}', [1], retries=Retry(2, on=75)"),
]


@pytest.mark.parametrize(("keys", "command", "body"), SAME)
def test_a_loop_is_the_model_that_yaml_gives(
    python: Loader, tmp_path: Path, keys: str, command: str, body: str
) -> None:
    written = read_flow(f"jobs:\n  a: {{{keys}, run: '{command}'}}\n", tmp_path / "flow.yaml")
    assert parts(python(f"{body}, name='a')"))["a"] == parts(written)["a"]


RETRIES = [
    ("4", 4, ()),
    ("0", 0, (RetryRule(times=0),)),
    ("Retry(4)", 0, (RetryRule(times=4),)),
    (
        'Retry(4, wait="1 s", factor=3, on=[75, "memory"])',
        0,
        (RetryRule(times=4, wait_ms=1000, factor=3.0, on=("75", "memory")),),
    ),
    (
        '[Retry(2, on=75), Retry(3, on=ConnectionError), Retry(1, wait="5 s")]',
        0,
        (RetryRule(times=2, on=("75",)), RetryRule(times=3, on=("ConnectionError",)), RetryRule(times=1, wait_ms=5000)),
    ),
]


@pytest.mark.parametrize(("retries", "times", "rules"), RETRIES)
@pytest.mark.parametrize("where", ["option", "defaults"])
def test_retries_say_how_often_and_after_what(
    python: Loader, tmp_path: Path, retries: str, times: int, rules: tuple[RetryRule, ...], where: str
) -> None:
    if where == "option":
        flow = python(f"shell('x', name='a', retries={retries})")
    else:
        python("shell('x')", top=f"@flow(defaults={{'retries': {retries}}})\ndef other():\n    shell('x', name='a')\n")
        flow = load(tmp_path / "work.py", "other")
    job = parts(flow)["a"]
    assert isinstance(job, JobActivity)
    assert (job.retries, job.retry) == (times, rules)


@pytest.mark.parametrize(
    ("when", "condition", "needs", "after"),
    [
        ("quality > 5", "jobs.one.outputs > 5", True, False),
        ("(quality > 5) & (n < 3)", "(jobs.one.outputs > 5) && (inputs.n < 3)", True, False),
        ("~(quality > 5)", "!(jobs.one.outputs > 5)", True, False),
        ("quality.failed", "failed(jobs.one)", False, True),
        ("quality.skipped | quality.failed", "skipped(jobs.one) || failed(jobs.one)", False, True),
        ("~quality.failed", "!failed(jobs.one)", False, True),
        ('f"{quality} > 5 && {n} == 1"', "(jobs.one.outputs) > 5 && (inputs.n) == 1", True, False),
        ('f"{quality > 5}"', "jobs.one.outputs > 5", True, False),
        ('f"!has({quality})"', "!has(jobs.one)", False, True),
        ('f"failed({quality}) || {n} > 3"', "failed(jobs.one) || (inputs.n) > 3", False, True),
        ('f"size({quality}) > 3"', "size((jobs.one.outputs)) > 3", True, False),
        ("True", "true", False, False),
    ],
)
def test_a_condition_is_an_expression_and_waits_for_what_it_asks(
    python: Loader, when: str, condition: str, needs: bool, after: bool
) -> None:
    flow = python(f"quality = one(n)\nshell('x', name='then', when={when})", "n: int = 1")
    then = parts(flow)["then"]
    assert then.when == Expr(condition)
    assert then.targets == (("one->then",) if needs or after else ())
    assert then.join == ("all" if needs else Expr("true") if after else "any")


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("when", ["bad.failed", 'f"!has({bad})"', 'f"failed({bad})"'])
def test_what_runs_because_a_job_failed_runs_only_then(python: Loader, when: str, fails: bool) -> None:
    flow = python(f"bad = shell('x', name='bad')\nshell('y', name='tell', when={when}, needs=[bad])")
    if when.startswith("f"):
        flow = python(f"bad = shell('x', name='bad')\nshell('y', name='tell', when={when})")
    world = World(flow, failing("bad") if fails else well)
    assert world.items == (["bad", "tell"] if fails else ["bad"])


def test_a_called_flow_that_failed_is_asked_like_a_job(python: Loader) -> None:
    top = "@flow\ndef inner(n: int = 0):\n    return one(n)\n"
    flow = python(
        "got = inner(1)\nshell('x', name='a', when=got.failed)\nshell('y', name='b', when=f'!has({got})')", top=top
    )
    assert [parts(flow)[name].when for name in "ab"] == [Expr("failed(jobs.inner)"), Expr("!has(jobs.inner)")]


def test_a_persons_task_is_a_step(python: Loader) -> None:
    flow = python(
        """
quality = one(n)
ok = task("Publish?", role="editor", deadline="2 h", description=f"It has {quality}.", data={"n": n},
          fields={"page": "where it goes"}, when=quality > 5)
later = task("And now?", role="editor", name="later", deadline=n * 1000)
shell(f"publish {ok['page']}", name="publish")
""",
        "n: int = 1",
    )
    assert parts(flow)["task"] == UserTask(
        name="task",
        role="editor",
        title="Publish?",
        description="It has ${{ jobs.one.outputs }}.",
        data={"n": "${{ inputs.n }}"},
        fields={"page": "where it goes"},
        deadline_ms=7_200_000,
        when=Expr("jobs.one.outputs > 5"),
        targets=("one->task",),
        sources=parts(flow)["task"].sources,
        join="all",
    )
    later = parts(flow)["later"]
    assert isinstance(later, UserTask) and later.deadline_ms == Expr("inputs.n * 1000")
    assert parts(flow)["publish"].targets == ("task->publish",)


SUB = "inputs: {n: {type: number}, m: 1}\njobs: {a: 'echo ${{ inputs.n }}'}\noutputs: {twice: '${{ inputs.n * 2 }}'}\n"


def test_a_flow_of_a_file_is_called(python: Loader, tmp_path: Path) -> None:
    (tmp_path / "sub.yaml").write_text(SUB)
    (tmp_path / "other.py").write_text(
        "from mendflow import flow, shell\n@flow\ndef far(k: int):\n    shell('x')\n    return k\n"
    )
    flow = python(
        """
first = call("sub.yaml", n=n)
many = call.map("sub.yaml", [1, 2, 3], m=n, max_parallel=2)
call.product("sub.yaml", n=[1, 2], m=[3, 4])
call.options(name="second", when=first["twice"] > 3)("sub.yaml", n=first["twice"])
call("deployed", x=1)
call("other.py:far", k=3)
return {"first": first["twice"], "many": many}
""",
        "n: int = 5",
    )
    found = parts(flow)
    assert list(found) == ["sub", "sub-2", "sub-3", "second", "deployed", "far"]
    assert [each.name for each in flow.calls] == ["sub", "far"]
    assert found["deployed"] == Call(name="deployed", flow="deployed", inputs={"x": 1})
    loop, second = found["sub-2"], found["second"]
    assert isinstance(loop, ForEach) and isinstance(loop.body, Call)
    assert (loop.items, loop.variable, loop.max_parallel) == ([1, 2, 3], "n", 2)
    assert loop.body.inputs == {"n": "${{ n }}", "m": "${{ inputs.n }}"}
    assert second.when == Expr("jobs.sub.outputs.twice > 3")


def test_a_called_flow_runs_for_each_element(python: Loader, tmp_path: Path) -> None:
    (tmp_path / "sub.yaml").write_text(SUB)
    for body in ("call.map('sub.yaml', [1, 2, 3], m=7)", "call.product('sub.yaml', n=[1, 2, 3])"):
        flow = python(f"return {body}")
        assert World(flow, well).outputs() == {"result": [{"twice": 2}, {"twice": 4}, {"twice": 6}]}


def test_flows_that_call_each_other_in_a_cycle_are_refused(python: Loader, tmp_path: Path) -> None:
    (tmp_path / "sub.yaml").write_text("jobs: {a: {call: 'work.py:main'}}\n")
    with pytest.raises(BadFlow, match="these flows call each other in a cycle: sub"):
        python("call('sub.yaml')")


def test_defaults_hold_for_all_jobs_that_do_not_say_otherwise(python: Loader, tmp_path: Path) -> None:
    top = """
@flow(defaults={"memory": "2 GB", "retries": 3, "env": {"A": "1", "B": "2"}}, env={"A": "0", "C": "0"})
def other():
    shell("x", name="a", env={"B": "3"})
    one.options(memory="1 GB", name="b")(1)
"""
    python("shell('x')", top=top)
    flow = load(tmp_path / "work.py", "other")
    first, second = job_of(flow, "a"), job_of(flow, "b")
    assert (first.resources.memory_bytes, first.retries, first.env) == (2 * 10**9, 3, {"A": "1", "B": "3", "C": "0"})
    assert (second.resources.memory_bytes, second.retries) == (10**9, 3)
