"""Data written into cases and items from outside, and the order as it is when it goes out at last."""

import pytest

from mendflow.core.engine import case_data, item_data, item_order, outstanding_orders, snapshot
from mendflow.core.engine.messages import (
    FinishItem,
    OfferTask,
    RestartItem,
    Resume,
    StageFiles,
    StartCalledCase,
    StartCase,
    SubmitJob,
    Suspend,
    WriteData,
)
from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Call,
    Copy,
    Flow,
    Input,
    JobActivity,
    Sequence,
    Stage,
    UserTask,
    Wait,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.jobs import FunctionRef, Outcome
from mendflow.core.model.templates import Template
from mendflow.core.model.values import Value
from tests.core.engine.world import Play, World, started

A = ItemId("a")


def job(name: str) -> JobActivity:
    return JobActivity(name=name, command=name)


def function(name: str, **kwargs: Template) -> JobActivity:
    return JobActivity(name=name, function=FunctionRef(module="m", name="f"), kwargs=kwargs)


def two() -> Sequence:
    return Sequence(name="s", body=(job("a"), job("b")))


def test_data_goes_into_the_inputs_of_a_case_its_variables_or_new_ones() -> None:  # EX-4
    body = Sequence(
        name="s",
        body=(
            Assign(name="set", copies=(Copy("venue", {"seats": 10}),)),
            job("a"),
            JobActivity(name="b", command="${{ inputs.price }} ${{ venue.seats }} ${{ venue.name }} ${{ note }}"),
        ),
    )
    play = Play(Flow(name=FlowName("f"), body=body, inputs={"price": Input(type="number", default=1)}))
    play.do(WriteData(values={"price": 5, "venue.name": "hall", "note": "mended"}, by="x/1"))
    assert case_data(play.case) == {"price": 5, "venue": {"seats": 10, "name": "hall"}, "note": "mended"}
    play.crash(with_snapshot=True)
    assert play.done("a").command("b") == "5 10 hall mended"


def test_data_can_be_written_while_the_case_is_suspended_and_before_it_begins() -> None:
    body = JobActivity(name="a", command="${{ inputs.n }} ${{ extra }}")
    held = Flow(name=FlowName("f"), body=body, inputs={"n": Input(default=1)})
    play = World()
    play.do(StartCase(case=CaseId("c"), flow=held, later=True))
    play.do(Suspend(holder="x", by="x/1"))
    play.do(WriteData(values={"n": 2, "extra": 3}, by="x/2"))
    assert case_data(play.case) == {"n": 2, "extra": 3}
    play.do(Resume(holder="x", by="x/3"))
    play.crash(with_snapshot=False)
    play.proceed(play.case.continuation)
    (order,) = (each for each in play.out.values() if isinstance(each, SubmitJob))
    assert order.spec.command == "2 3"


def test_what_was_written_before_the_case_begins_lies_over_first_values_and_over_no_others() -> None:  # EX-4
    first = Assign(
        name="f.variables", copies=(Copy("x", 5), Copy("y", {"k": 1, "l": "${{ x }}"}), Copy("n", 0)), first=True
    )
    later = Assign(name="later", copies=(Copy("n", 1),))
    flow = Flow(name=FlowName("f"), body=Sequence(name="s", body=(first, later, job("a"))))
    play = World()
    play.do(StartCase(case=CaseId("c"), flow=flow, later=True))
    play.do(WriteData(values={"x": 7, "y.k": 2, "n": 9}, by="x/1"))
    play.do(WriteData(values={"x": 77}, by="x/2"))
    play.crash(with_snapshot=True)
    play.proceed(play.case.continuation)
    assert case_data(play.case) == {"x": 77, "y": {"k": 2, "l": 77}, "n": 1}


def test_a_case_that_is_over_still_says_what_it_knew() -> None:
    body = Sequence(name="s", body=(Assign(name="set", copies=(Copy("v", 3),)), job("a")))
    assert case_data(started(body).done("a").case) == {"v": 3}
    assert case_data(started(body).fail("a").case) == {"v": 3}


@pytest.mark.parametrize(
    ("body", "values", "after"),
    [
        (function("a", n=1), {"n": 2, "m.k": 3}, {"n": 2, "m": {"k": 3}}),
        (JobActivity(name="a", command="x", env={"E": "1"}), {"E": 2, "F": "x"}, {"E": "2", "F": "x"}),
        (UserTask(name="a", role="r", data={"seats": 5}), {"seats": 9}, {"seats": 9}),
        (UserTask(name="a", role="r"), {"seats": 9}, {"seats": 9}),
        (Call(name="a", flow="g", inputs={"x": [1, 2]}), {"x[1]": 5}, {"x": [1, 5]}),
        (JobActivity(name="a", command="x", inputs={"in": "a/path"}), {"F": 1}, {"F": "1"}),
        (Stage(name="a", files={"f": "p", "g": "q"}), {"f": "other"}, {"f": "other", "g": "q"}),
    ],
    ids=["function", "command", "task", "empty-task", "call", "staging", "stage"],
)
def test_data_goes_into_a_live_item_and_its_order_goes_out_with_it(
    body: Activity, values: dict[str, Value], after: dict[str, Value]
) -> None:  # EX-4
    play = started(body)
    serial = play.serial("a")
    assert play.do(WriteData(item=A, values=values, held=True, by="x/1")) == []
    assert item_data(play.case, A) == after
    order = item_order(play.case, serial)
    assert [order] == outstanding_orders(play.case), "after a crash it goes out with the new data too"
    assert isinstance(order, (SubmitJob, StageFiles, OfferTask, StartCalledCase)) and order.serial == serial
    play.crash(with_snapshot=False)
    play.do(RestartItem(item=A))
    assert item_data(play.case, A) == after, "it had not gone out: that is its data at its start"


@pytest.mark.parametrize(
    ("body", "values", "said"),
    [
        (Wait(name="a", duration=1), {"x": 1}, "item a: it has no data to write to"),
        (Stage(name="a", files={"f": "p"}), {"x": "q"}, "it stages no file 'x'; it has f"),
        (Stage(name="a", files={"f": "p"}), {"f": 1}, "the source of f is 1"),
        (UserTask(name="a", role="r", data=[1]), {"x": 1}, "not a map"),
        (function("a"), {"x y": 1}, "not a path into data"),
        (function("a", n=1), {"n.m": 1}, "cannot be put into something that is not a map"),
        (job("a"), {"X=Y": 1}, "environment variable"),
        (function("a"), {"n": float("nan")}, "cannot be taken"),
    ],
)
def test_what_cannot_be_written_into_an_item_is_refused(body: Activity, values: dict[str, Value], said: str) -> None:
    play = started(body)
    with pytest.raises(RequestError, match=said):
        play.do(WriteData(item=A, values=values))
    with pytest.raises(RequestError, match=said):
        play.do(RestartItem(item=A, values=values))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"n": "x"}, "input n must be a number"),
        ({"inputs": 1}, "'inputs' cannot be a variable"),
        ({"jobs.a": 1}, "'jobs' cannot be a variable"),
        ({"a-b": 1}, "'a-b' cannot be a variable"),
        ({"v": float("inf")}, "cannot be taken"),
        ({"n.m": 1}, "not a map"),
    ],
)
def test_what_cannot_be_written_into_a_case_is_refused(values: dict[str, Value], said: str) -> None:
    play = Play(Flow(name=FlowName("f"), body=job("a"), inputs={"n": Input(type="number", default=1)}))
    before = snapshot(play.case)
    with pytest.raises(RequestError, match=said):
        play.do(WriteData(values=values))
    assert snapshot(play.case) == before


def test_what_is_written_after_a_restart_stays_although_both_wait_for_the_case() -> None:
    play = started(function("a", n=1))
    play.do(Suspend(holder="x", by="x/1"))
    play.do(RestartItem(item=A, by="x/2"))
    play.do(WriteData(item=A, values={"n": 2}, by="x/3"))
    play.crash(with_snapshot=True)
    play.do(Resume(holder="x", by="x/4"))
    assert item_data(play.case, A) == {"n": 2}


def test_a_job_whose_files_could_not_be_brought_is_restarted_with_other_sources() -> None:  # FM-8
    play = started(JobActivity(name="a", command="x", inputs={"data/in.csv": "a/path", "b": "b/path"}))
    play.do(RestartItem(item=A, values={"data/in.csv": "another/replica", "E": 1}))
    (order,) = play.out.values()
    assert isinstance(order, StageFiles) and order.files == {"data/in.csv": "another/replica", "b": "b/path"}
    assert item_data(play.case, A) == {"E": "1"}
    play.crash(with_snapshot=False)


def test_an_order_that_nobody_waits_for_is_not_given() -> None:
    play = started(two())
    assert isinstance(item_order(play.case, 1), SubmitJob)
    play.do(Suspend())
    play.do(FinishItem(serial=1, outcome=Outcome()))
    assert item_order(play.case, 1) is None
    assert item_order(play.case, 99) is None
    assert item_data(play.case, ItemId("b")) == {}
