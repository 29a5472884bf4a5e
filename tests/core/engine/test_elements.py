"""Which element of its loops an item is for, in a few words."""

from typing import Any

import pytest

from mendflow.core.engine import elements as elements_module
from mendflow.core.engine.elements import CHARS_MAX, element_of, short, telling_columns
from mendflow.core.engine.messages import ItemFailed, ItemSkipped, SubmitJob
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, ForEach, JobActivity, Parallel, Sequence
from mendflow.core.model.ids import ItemId, item_text
from mendflow.core.model.jobs import FunctionRef
from mendflow.core.model.values import FileRef
from tests.core.engine.world import started

FILE = FileRef(sha256="0" * 64, bytes=3, name="deep/s3.txt").as_value()


def elements(body: Activity) -> dict[str, str]:
    play = started(body)
    return {
        order.spec.item: element_of(play.case, order.serial)
        for order in play.out.values()
        if isinstance(order, SubmitJob)
    }


def loop(name: str = "each", body: Activity | None = None, **more: Any) -> ForEach:
    return ForEach(name=name, body=body or JobActivity(name="a", command="x"), **more)


def test_an_item_of_a_loop_has_its_element() -> None:
    assert elements(loop(items=["s1", FILE])) == {"a[0]": "s1", "a[1]": "s3.txt"}
    assert elements(loop(first=5, last=6)) == {"a[0]": "5", "a[1]": "6"}


def test_of_several_lists_each_element_has_its_name() -> None:
    found = elements(loop(axes={"x": [1, 2], "y": ["p"]}))
    assert found == {"a[0]": "x=1, y=p", "a[1]": "x=2, y=p"}


def test_of_loops_in_loops_the_outer_element_comes_first() -> None:
    inner = loop("inner", items=["p", "q"])
    assert elements(loop(items=["one", "two"], body=inner))["a[1,0]"] == "two, p"
    named = loop("inner", items=["p"], variable="item")
    steps = Sequence(name="s", body=(named,))
    assert elements(loop(items=["one", "two"], variable="item", body=steps)) == {"a[0,0]": "one, p", "a[1,0]": "two, p"}


def test_outside_of_loops_there_is_none() -> None:
    assert elements(JobActivity(name="a", command="x")) == {"a": ""}


def test_for_a_job_that_is_no_call_the_others_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-6
    play = started(Parallel(name="all", branches=tuple(JobActivity(name=f"a{n}", command="x") for n in range(3))))
    monkeypatch.setattr(elements_module, "_same_calls", lambda *_: pytest.fail("a flow may have thousands of jobs"))
    assert {element_of(play.case, order.serial) for order in play.out.values()} == {""}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("data/raw/s3.txt", "s3.txt"),
        ("data/raw/", "raw"),
        ("/", "/"),
        ("two\nlines", "two lines"),
        ({"id": 7, "x": 1}, "7"),
        ({"name": "k", "id": 7}, "k"),
        ({"x": 1}, '{"x": 1}'),
        ([1, "a/b"], '[1, "a/b"]'),
        (None, "null"),
        (True, "true"),
        (0.5, "0.5"),
    ],
)
def test_a_value_is_shown_by_what_tells_it_from_others(value: Any, shown: str) -> None:
    assert short(value) == shown


def test_a_long_value_is_cut() -> None:
    assert len(short("x" * 1000)) == CHARS_MAX and short("x" * 1000).endswith("...")


def test_the_element_stands_behind_the_item_unless_it_is_its_number() -> None:
    assert item_text(ItemId("a[2]"), "s3.txt") == "a[2] (s3.txt)"
    assert item_text(ItemId("a[2]"), "2") == "a[2]"
    assert item_text(ItemId("a"), "") == "a"


def lane(sample: str, number: int, **more: Any) -> dict[str, Any]:
    return {"sample": sample, "lane": f"L{number}", "reads": f"reads/{sample}_{number}.txt", **more}


def test_rows_that_one_column_does_not_tell_apart_are_shown_with_those_that_do() -> None:
    rows = [lane("A", 1), lane("A", 2), lane("B", 1)]
    assert elements(loop(items=rows)) == {
        "a[0]": "sample=A, lane=L1",
        "a[1]": "sample=A, lane=L2",
        "a[2]": "sample=B, lane=L1",
    }
    assert elements(loop(items=[lane("A", 1), lane("B", 1)])) == {"a[0]": "A", "a[1]": "B"}


def test_of_loops_in_loops_rows_are_told_apart_in_each() -> None:
    inner = loop("inner", items=["p", "q"])
    found = elements(loop(items=[lane("A", 1), lane("A", 2)], variable="row", body=inner))
    assert found["a[1,0]"] == "sample=A, lane=L2, p"


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([{"sample": "A", "batch": "x", "lane": 1}, {"sample": "A", "batch": "x", "lane": 2}], ("sample", "lane")),
        ([{"sample": "A", "in": FILE}, {"sample": "A", "in": {**FILE, "name": "s4.txt"}}], ("sample", "in")),
        ([{"sample": "A"}, {"sample": "A"}], ("sample",)),
        ([{"sample": "A", "parts": [1]}, {"sample": "A", "parts": [2]}], ("sample",)),
        (
            [{"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "1", "c": "2"}, {"a": "1", "b": "2", "c": "1"}],
            ("a", "b", "c"),
        ),
        ([{"x": 1}, {"x": 2}], ()),
        (["s1", "s2"], ()),
        ([], ()),
    ],
)
def test_the_columns_that_tell_rows_apart_are_as_few_as_possible(rows: list[Any], columns: tuple[str, ...]) -> None:
    assert telling_columns(rows) == columns


def test_calls_of_one_function_are_told_apart_by_what_they_are_called_with() -> None:
    def called(name: str, *args: Any, **kwargs: Any) -> JobActivity:
        return JobActivity(name=name, function=FunctionRef(module="lanes", name="count"), args=args, kwargs=kwargs)

    body = Parallel(
        name="p",
        branches=(
            called("count", "A", "L1", {"$path": "reads/A_1.txt"}, fast=True, n=1),
            called("count-2", "A", "L2", {"$path": "reads/A_2.txt"}, fast=True, n=2),
            JobActivity(name="total", function=FunctionRef(module="lanes", name="total"), args=("x",)),
        ),
    )
    assert elements(body) == {"count": "L1, A_1.txt, n=1", "count-2": "L2, A_2.txt, n=2", "total": ""}


def test_se_1_what_is_secret_by_its_name_names_no_row() -> None:
    rows = [{"password": "hunter2", "n": 1}, {"password": "hunter3", "n": 2}]
    assert elements(loop(items=rows)) == {
        "a[0]": '{"password": "(hidden)", "n": 1}',
        "a[1]": '{"password": "(hidden)", "n": 2}',
    }
    alike = [{"host": "h", "api_token": "x", "n": 1}, {"host": "h", "api_token": "y", "n": 2}]
    assert telling_columns(alike) == ("host", "n")
    assert elements(loop(items=alike)) == {"a[0]": "host=h, n=1", "a[1]": "host=h, n=2"}


def test_se_1_an_element_with_a_secret_name_is_hidden() -> None:
    assert elements(loop(items=["hunter2"], variable="password")) == {"a[0]": "(hidden)"}
    assert elements(loop(axes={"api_token": ["t"], "n": [1]})) == {"a[0]": "api_token=(hidden), n=1"}
    assert short([{"password": "hunter2"}]) == '[{"password": "(hidden)"}]'


def test_an_item_that_is_skipped_or_fails_early_has_its_element() -> None:  # UI-1
    body = JobActivity(name="a", command="x ${{ item.file }}", when=Expr("item.use"))
    rows = [{"id": "s1", "use": True, "file": 1}, {"id": "s2", "use": False}, {"id": "s3", "use": True}]
    play = started(loop(items=rows, variable="item", body=body))
    told = {
        order.item: (type(order), order.element) for order in play.given if isinstance(order, ItemSkipped | ItemFailed)
    }
    assert told == {"a[1]": (ItemSkipped, "s2"), "a[2]": (ItemFailed, "s3")}


def test_what_is_below_an_iteration_that_does_not_run_has_the_element_of_that_iteration() -> None:
    inner = loop("inner", items=["p"], body=JobActivity(name="a", command="x"))
    steps = Sequence(name="s", body=(inner, JobActivity(name="b", command="y")), when=Expr("each == 'two'"))
    play = started(loop(items=["one", "two"], variable="each", body=steps))
    told = {order.item: order.element for order in play.given if isinstance(order, ItemSkipped)}
    assert told == {"a[0]": "one", "b[0]": "one"}
