"""What no flow may ask for, whoever posts it, and that all of it is said at once."""

import math

import pytest

from mendflow.core.engine import Case, compile_flow, evolve
from mendflow.core.engine.messages import Event, StartCase
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Call,
    Copy,
    Flow,
    ForEach,
    Input,
    JobActivity,
    OnAlarm,
    OnMessage,
    Pick,
    Receive,
    Scope,
    Sequence,
    UserTask,
    Wait,
)
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.jobs import FunctionRef, Limits
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.values import Value
from tests.core.engine.world import flow

YEARS_20 = 20 * 366 * 86_400_000


def job(name: str = "a", **more: object) -> JobActivity:
    return JobActivity(name=name, **{"command": "x", **more})  # type: ignore[arg-type]  # the fields are the model's own


def function(module: str, name: str) -> JobActivity:
    return JobActivity(name="a", function=FunctionRef(module=module, name=name))


def deep() -> Value:
    value: Value = []
    for _ in range(100):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (job(""), "no name"),
        (job("a/b"), "cannot be a name"),
        (job("a[0]"), "cannot be a name"),
        (job("a\nb"), "cannot be a name"),
        (job("a" * 101), "cannot be a name"),
        (job(label="x/y"), "cannot be a label"),
        (job(command=None), "a command or a function"),
        (job(function=FunctionRef(module="m", name="f")), "not both"),
        (job(command="a\0b"), "NUL"),
        (job(env={"": "x"}), "environment variable"),
        (job(env={"A=B": "x"}), "environment variable"),
        (job(env={"A\0": "x"}), "environment variable"),
        (job(env={"A": "x\0"}), "NUL"),
        (job(inputs={"/etc/passwd": "x"}), "inside the job's folder"),
        (job(inputs={"a/../../b": "x"}), "inside the job's folder"),
        (job(inputs={"": "x"}), "inside the job's folder"),
        (job(files={"t": "../t"}), "inside the job's folder"),
        (job(files={"t": "t\0"}), "inside the job's folder"),
        (function("os; import sys", "f"), "name of a module"),
        (function("..m", "f"), "name of a module"),
        (function("m", "f()"), "name of a function"),
        (job(retries=-1), "retries is -1"),
        (job(retries=10**12), "retries is"),
        (job(retry_wait_ms=-1), "retry_wait_ms"),
        (job(expected_ms=YEARS_20), "expected_ms"),
        (job(priority=10**30), "priority"),
        (job(limits=Limits(open_files=-1)), "limits.open_files"),
        (job(resources=ResourceTemplates(cpus=-1)), "cpus"),
        (job(resources=ResourceTemplates(cpus=math.nan)), "cpus"),
        (job(resources=ResourceTemplates(memory_bytes="much")), "memory_bytes"),
        (job(resources=ResourceTemplates(wall_ms=YEARS_20)), "wall_ms"),
        (job(args=(10**30,)), "too large"),
        (job(kwargs={"x": deep()}), "deeper"),
        (Wait(name="w", duration=-1), "duration"),
        (Wait(name="w", duration=YEARS_20), "duration"),
        (Scope(name="s", body=job(), alarms=(OnAlarm(body=job("b"), every=0),)), "every"),
        (Scope(name="s", body=job(), variables={"a b": 1}), "variable"),
        (Pick(name="p", messages=(OnMessage(channel="", body=job()),)), "channel"),
        (Pick(name="p", alarms=(OnAlarm(body=job(), duration=YEARS_20),)), "duration"),
        (Receive(name="r", channel=""), "channel"),
        (UserTask(name="t", role=" "), "role"),
        (UserTask(name="t", role="r", deadline_ms=-5), "deadline_ms"),
        (ForEach(name="f", body=job()), "`items`, or `axes`, or `first` and `last`"),
        (ForEach(name="f", body=job(), first=-1, last=3), "first is -1"),
        (ForEach(name="f", body=job(), items=[1], max_parallel=-1), "max_parallel"),
        (ForEach(name="f", body=job(), items=[1], min_success=-1), "min_success"),
        (Assign(name="s", copies=(Copy("[0]", 1),)), "path into a variable"),
        (Assign(name="s", copies=(Copy("x" + ".x" * 5000, 1),)), "path into a variable"),
        (Call(name="c", flow="f", inputs={"x": math.inf}), "inf"),
    ],
)
def test_what_makes_no_sense_is_refused(body: Activity, said: str) -> None:
    with pytest.raises(BadFlow, match=r".") as refused:
        compile_flow(flow(body))
    assert any(said in problem.message for problem in refused.value.problems), refused.value.problems


def test_a_default_that_is_no_value_is_refused() -> None:
    with pytest.raises(BadFlow, match="too large"):
        compile_flow(Flow(name=FlowName("f"), body=job(), inputs={"n": Input(default=10**30)}))


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(BadFlow) as refused:
        compile_flow(flow(Sequence(name="s", body=(job("a/b", retries=-1), job("c", command=None), job("c")))))
    assert len(refused.value.problems) == 4


@pytest.mark.parametrize(
    "body",
    [
        job("count.iteration", label="count"),
        job("ein Schritt-2"),
        job("step." * 30 + "1"),
        function("package.my-script", "Class.method"),
        job(files={"t": "out/${{ inputs.x }}"}, inputs={"in/x": "/given/x"}, env={"A": "${{ x }}", "b": "=1"}),
        job(resources=ResourceTemplates(cpus=0.5, memory_bytes="${{ inputs.m }}", site="here")),
        Wait(name="w", duration=Expr("x")),
        Assign(name="s", copies=(Copy("totals.by-name[0].x", "${{ x }}"),)),
    ],
)
def test_what_formats_make_is_taken(body: Activity) -> None:
    compile_flow(flow(body))


def test_a_case_that_was_taken_is_read_again_even_if_its_flow_would_be_refused_now() -> None:
    case = Case.blank()
    evolve(case, Event(1, StartCase(case=CaseId("c"), flow=flow(job("a/b")))))
    assert case.status == "running"


def test_what_is_wrong_in_an_expression_or_in_a_called_flow_is_found_before_anything_starts() -> None:
    inner = Flow(name=FlowName("g"), body=JobActivity(name="x", command="${{ 1 + }}"))
    body = Sequence(
        name="s",
        body=(
            JobActivity(
                name="a", command="${{ nofunction(1) }}", resources=ResourceTemplates(memory_bytes="${{ 2 * }}")
            ),
            job("b", when=Expr("a ==")),
            Call(name="c", flow="g", inputs={"n": ["${{ )"]}),
            job("d", when=Expr("true", "xquery")),
        ),
    )
    with pytest.raises(BadFlow) as caught:
        compile_flow(Flow(name=FlowName("f"), body=body, calls=(inner,)))
    found = "\n".join(each.message for each in caught.value.problems)
    for said in (
        "a: in the expression `nofunction(1)`: there is no function or name `nofunction`",
        "a: in the expression `2 *`: the expression ends too early",
        "b: in the expression `a ==`: the expression ends too early",
        "c: in the expression `{'n': ['${{ )']}`: `${{` has no `}}` after it",
        "d: in the expression `true`: `xquery` is not a known language of expressions",
        "flow g: x: in the expression `1 +`: the expression ends too early",
    ):
        assert said in found
