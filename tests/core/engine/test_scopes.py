"""Scopes: variables, faults and their handlers, termination, events, isolation."""

import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Catch,
    Compensate,
    Copy,
    Empty,
    JobActivity,
    OnAlarm,
    OnMessage,
    Parallel,
    Rethrow,
    Scope,
    Sequence,
    Throw,
    Wait,
)
from tests.core.engine.world import Play, started


def job(name: str, command: str = "") -> JobActivity:
    return JobActivity(name=name, command=command or name)


def sequence(name: str, *body: Activity) -> Sequence:
    return Sequence(name=name, body=body)


def scope(name: str, body: Activity, **more: object) -> Scope:
    return Scope(name=name, body=body, **more)  # type: ignore[arg-type]  # the fields are the model's own


def fault_of(play: Play) -> str:
    assert play.ended.fault is not None
    return play.ended.fault.name


def test_variables_are_set_in_their_order_and_hide_outer_ones() -> None:
    inner = scope("inner", job("b", "${{ x }} ${{ y }}"), variables={"x": 2, "y": "${{ x + 1 }}"})
    play = started(scope("outer", sequence("s", inner, job("c", "${{ x }}")), variables={"x": 1}))
    assert play.command("b") == "2 3"
    play.done("b")
    assert play.command("c") == "1"


def test_a_variable_that_cannot_be_set_is_a_fault_around_the_scope_not_in_it() -> None:
    inner = scope("inner", Empty(name="e"), variables={"x": "${{ nobody }}"}, catches=(Catch(body=job("no")),))
    outer = scope("outer", inner, catches=(Catch(fault="scopeInitializationFailure", body=job("yes")),))
    assert started(outer).jobs == ["yes"]


@pytest.mark.parametrize(
    ("path", "value", "variables", "expected"),
    [
        ("x", 5, {"x": 1}, 5),
        ("x.a", 5, {"x": {"a": 1, "b": 2}}, {"a": 5, "b": 2}),
        ("x.a.b", 5, {"x": {}}, {"a": {"b": 5}}),
        ("x[1].a", 5, {"x": [1, {"a": 2}]}, [1, {"a": 5}]),
        ("x[2]", 5, {"x": [1, 2]}, [1, 2, 5]),
    ],
)
def test_assign_goes_to_a_variable_or_to_a_part_of_one(
    path: str, value: int, variables: dict[str, object], expected: object
) -> None:
    body = sequence(
        "s", Assign(name="a", copies=(Copy(path, value),)), Assign(name="o", copies=(Copy("y.x", "${{ x }}"),))
    )
    play = started(
        scope("sc", sequence("t", body, Throw(name="t2", fault="f", data="${{ y.x }}")), variables=variables)
    )
    assert play.ended.fault is not None and play.ended.fault.data == expected


@pytest.mark.parametrize(
    ("copy", "fault"),
    [
        (Copy("y", "${{ nobody }}"), "uninitializedVariable"),
        (Copy("x.a", 1), "selectionFailure"),
        (Copy("x[7]", 1), "selectionFailure"),
    ],
)
def test_an_assign_that_fails_changes_nothing(copy: Copy, fault: str) -> None:
    assign = Assign(name="a", copies=(Copy("x", 2), Copy("new", 3), copy))
    body = scope("inner", assign, catches=(Catch(body=job("look", "${{ x }} ${{ fault.name }}")),))
    play = started(scope("sc", body, variables={"x": 1}))
    assert play.command("look") == f"1 {fault}"


@pytest.mark.parametrize(
    ("thrown", "handler"),
    [("x", "on-x"), ("y", "on-y"), ("z", "on-all")],
)
def test_a_fault_is_caught_by_its_name_and_else_by_who_catches_all(thrown: str, handler: str) -> None:
    catches = (Catch(body=job("on-all")), Catch(fault="x", body=job("on-x")), Catch(fault="y", body=job("on-y")))
    play = started(sequence("s", scope("sc", Throw(name="t", fault=thrown), catches=catches), job("after")))
    assert play.jobs == [handler]
    play.done(handler)
    assert play.jobs == ["after"], "a fault that was handled is over"


def test_the_handler_knows_the_fault() -> None:
    handler = job("h", "${{ f.name }} ${{ f.category }} ${{ f.data.why }} ${{ f.exit_code }}")
    play = started(scope("sc", job("a"), catches=(Catch(body=handler, variable="f"),)))
    play.fail("a", name="broken", data={"why": "rain"})
    assert play.command("h") == "broken job rain 1"


def test_the_handler_begins_only_when_all_that_ran_has_ended() -> None:
    ending = scope("ending", job("b"), termination=job("term"))
    play = started(scope("sc", Parallel(name="p", branches=(job("a"), ending)), catches=(Catch(body=job("h")),)))
    play.fail("a")
    assert play.jobs == ["term"]
    play.done("term")
    assert play.jobs == ["h"]


def test_rethrow_throws_the_same_fault_again() -> None:
    inner = scope("inner", Throw(name="t", fault="x", data=1), catches=(Catch(body=Rethrow(name="r")),))
    play = started(scope("outer", inner, catches=(Catch(body=job("h", "${{ fault.name }} ${{ fault.data }}")),)))
    assert play.command("h") == "x 1"


def test_a_fault_in_a_handler_goes_to_the_scope_around() -> None:
    catches = (Catch(fault="x", body=Throw(name="t2", fault="y")), Catch(fault="y", body=job("no")))
    inner = scope("inner", Throw(name="t", fault="x"), catches=catches)
    play = started(scope("outer", inner, catches=(Catch(body=job("h", "${{ fault.name }}")),)))
    assert play.command("h") == "y"


def test_a_fault_that_nobody_catches_fails_the_case() -> None:
    play = started(
        scope("sc", Throw(name="t", fault="x", message="no luck"), catches=(Catch(fault="y", body=job("h")),))
    )
    assert (play.status, fault_of(play)) == ("failed", "x")


@pytest.mark.parametrize(("fault", "ends"), [("selectionFailure", True), ("joinFailure", False), ("mine", False)])
def test_exit_on_standard_fault_ends_the_case_for_standard_faults_only(fault: str, ends: bool) -> None:
    body = scope("sc", Throw(name="t", fault=fault), exit_on_standard_fault=True, catches=(Catch(body=job("h")),))
    play = started(body)
    assert play.jobs == ([] if ends else ["h"])
    assert play.status == ("failed" if ends else "running")


def test_a_fault_in_a_termination_handler_is_lost() -> None:
    ending = scope("ending", job("b"), termination=Throw(name="t", fault="y"))
    play = started(
        scope(
            "sc", Parallel(name="p", branches=(job("a"), ending)), catches=(Catch(body=job("h", "${{ fault.name }}")),)
        )
    )
    play.fail("a", name="x")
    assert play.command("h") == "x"


def test_without_a_termination_handler_completed_inner_scopes_are_compensated() -> None:
    done = scope("done", Empty(name="e"), compensation=job("undo"))
    ending = scope("ending", sequence("s", done, job("b")))
    play = started(scope("sc", Parallel(name="p", branches=(job("a"), ending)), catches=(Catch(body=job("h")),)))
    play.fail("a")
    assert play.jobs == ["undo"]
    play.done("undo")
    assert play.jobs == ["h"]


def test_a_scope_that_handles_a_fault_is_left_to_finish_when_it_is_stopped() -> None:
    handling = scope(
        "handling", Throw(name="t", fault="x"), catches=(Catch(body=job("inner")),), termination=job("term")
    )
    play = started(scope("sc", Parallel(name="p", branches=(handling, job("a"))), catches=(Catch(body=job("h")),)))
    play.fail("a")
    assert play.jobs == ["inner"]
    play.done("inner")
    assert play.jobs == ["h"]


def test_results_of_a_scope_are_known_around_it_when_it_has_ended() -> None:
    play = started(sequence("s", scope("sc", job("a")), job("b", "${{ jobs.a.outputs }}")))
    play.done("a", outputs="seen")
    assert play.command("b") == "seen"


def test_an_event_handler_runs_beside_the_body_once_for_each_message() -> None:
    events = (OnMessage(channel="ev", variable="m", body=job("on", "${{ m }}")),)
    play = started(sequence("s", scope("sc", job("a"), messages=events), job("after")))
    play.send("ev", 1).send("ev", 2)
    assert play.jobs == ["a", "on[0]", "on[1]"]
    assert [play.command("on[0]"), play.command("on[1]")] == ["1", "2"]
    play.done("a", "on[0]")
    assert play.jobs == ["on[1]"], "the scope ends when the handlers that began have ended"
    play.done("on[1]")
    assert play.jobs == ["after"]


def test_when_the_body_has_ended_events_are_heard_no_more() -> None:
    events = (OnMessage(channel="ev", body=job("on")),)
    play = started(sequence("s", scope("sc", job("a"), messages=events), job("after")))
    play.send("ev")
    play.done("a")
    play.send("ev")
    assert play.jobs == ["on[0]"]


def test_a_fault_in_an_event_handler_is_the_scopes() -> None:
    events = (OnMessage(channel="ev", body=Throw(name="t", fault="x")),)
    play = started(scope("sc", job("a"), messages=events, catches=(Catch(body=job("h")),)))
    play.send("ev")
    assert (play.jobs, play.cancelled) == (["h"], 1)


def test_an_alarm_goes_off_once_and_a_repeated_one_again_and_again() -> None:
    alarms = (OnAlarm(duration=100, body=job("once")), OnAlarm(every=Expr("30"), body=job("often")))
    play = started(scope("sc", job("a"), alarms=alarms))
    for _ in range(4):
        play.ring()
    assert [item for item in play.jobs if item.startswith("often")] == ["often[0]", "often[1]", "often[2]"]
    assert [item for item in play.jobs if item.startswith("once")] == ["once[3]"]
    play.done("a")
    assert play.timers == [], "alarms are off when the body has ended"


def test_a_repeated_alarm_does_not_drift_and_does_not_pile_up() -> None:
    play = started(scope("sc", job("a"), alarms=(OnAlarm(every=100, body=Empty(name="e")),)))
    [serial] = play.timers
    play.now = 1_000 + 350
    play.fire(serial)
    [order] = [play.out[serial] for serial in play.timers]
    assert getattr(order, "at", 0) == 1_400


def test_isolated_scopes_run_one_at_a_time_in_the_order_they_came() -> None:
    branches = tuple(scope(f"sc{n}", sequence(f"s{n}", job(f"a{n}"), job(f"b{n}")), isolated=True) for n in range(3))
    play = started(Parallel(name="p", branches=branches))
    order = []
    while play.jobs:
        assert len(play.jobs) == 1
        order += play.jobs
        play.done(*play.jobs)
    assert order == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_an_isolated_scope_that_fails_lets_the_next_one_run() -> None:
    first = scope("one", job("a"), isolated=True)
    second = scope("two", job("b"), isolated=True)
    play = started(Parallel(name="p", branches=(first, second), on_fault="finish"))
    play.fail("a")
    assert play.jobs == ["b"]


def test_a_stopped_scope_that_waits_for_isolation_never_runs() -> None:
    waiting = scope("two", job("b"), isolated=True, compensation=Empty(name="e"))
    inner = scope("in", Parallel(name="q", branches=(waiting, job("f"))), catches=(Catch(body=job("h")),))
    first = scope("one", job("a"), isolated=True)
    play = started(Parallel(name="p", branches=(first, inner)))
    play.fail("f")
    play.done("a")
    assert play.jobs == ["h"]


def test_waits_end_when_their_time_has_come() -> None:
    play = started(sequence("s", Wait(name="w", duration=50), Wait(name="v", until=Expr("5000")), job("a")))
    play.ring()
    assert (play.now, play.jobs) == (1_050, [])
    play.ring()
    assert (play.now, play.jobs) == (5_000, ["a"])


def undoing(name: str, *body: Activity, undo: Activity | None = None) -> Scope:
    return scope(name, sequence(f"{name}-body", *body), compensation=undo or job(f"undo-{name}"))


def test_completed_scopes_are_compensated_in_reverse_order_of_completion() -> None:
    branches = (undoing("a", job("ja")), undoing("b", job("jb")), undoing("c", job("jc")))
    play = started(sequence("s", Parallel(name="p", branches=branches), Throw(name="t", fault="x")))
    play.done("jb", "jc", "ja")
    order = []
    while play.jobs:
        order += play.jobs
        play.done(*play.jobs)
    assert order == ["undo-a", "undo-c", "undo-b"]
    assert fault_of(play) == "x"


def test_a_scope_without_a_handler_passes_compensation_on_to_those_inside() -> None:
    outer = scope("outer", sequence("so", undoing("a"), undoing("b")))
    play = started(sequence("s", outer, undoing("c"), Throw(name="t", fault="x")))
    order = []
    while play.jobs:
        order += play.jobs
        play.done(*play.jobs)
    assert order == ["undo-c", "undo-b", "undo-a"]


def test_a_scope_with_a_handler_decides_itself_what_is_compensated_inside() -> None:
    silent = undoing("silent", undoing("a"))
    telling = undoing("telling", undoing("b"), undo=sequence("u", job("undo-telling"), Compensate(name="all")))
    play = started(sequence("s", silent, telling, Throw(name="t", fault="x")))
    order = []
    while play.jobs:
        order += play.jobs
        play.done(*play.jobs)
    assert order == ["undo-telling", "undo-b", "undo-silent"]


def test_a_compensation_handler_sees_its_scopes_data_as_it_was() -> None:
    inner = scope(
        "in",
        sequence("b", job("a"), Assign(name="as", copies=(Copy("x", 2),))),
        variables={"x": 1},
        compensation=job("undo", "${{ x }} ${{ y }} ${{ jobs.a.outputs }}"),
    )
    outer = scope(
        "out",
        sequence("s", inner, Assign(name="later", copies=(Copy("y", 9),)), Throw(name="t", fault="f")),
        variables={"y": 1},
    )
    play = started(outer)
    play.done("a", outputs="kept")
    assert play.command("undo") == "2 9 kept"


def test_a_handler_may_compensate_one_scope_by_name_and_nothing_is_compensated_twice() -> None:
    handler = sequence("h", Compensate(name="c1", scope="a"), Compensate(name="c2"), Compensate(name="c3"), job("end"))
    body = sequence("s", undoing("a"), undoing("b"), Throw(name="t", fault="x"))
    play = started(scope("sc", body, catches=(Catch(body=handler),)))
    order = []
    while play.jobs:
        order += play.jobs
        play.done(*play.jobs)
    assert order == ["undo-a", "undo-b", "end"]


def test_a_scope_that_caught_a_fault_is_not_compensated() -> None:
    caught = scope(
        "caught", Throw(name="t1", fault="y"), catches=(Catch(body=Empty(name="e")),), compensation=job("no")
    )
    play = started(sequence("s", caught, undoing("a"), Throw(name="t", fault="x")))
    assert play.jobs == ["undo-a"]
    play.done("undo-a")
    assert play.status == "failed"


def test_a_fault_in_a_compensation_handler_is_the_fault_of_who_compensates() -> None:
    bad = undoing("bad", undo=sequence("u", undoing("partly"), Throw(name="t1", fault="worse")))
    body = scope("sc", sequence("s", bad, Throw(name="t", fault="x")))
    play = started(scope("outer", body, catches=(Catch(body=job("h", "${{ fault.name }}")),)))
    assert play.jobs == ["undo-partly"], "what the handler had done is undone first"
    play.done("undo-partly")
    assert play.command("h") == "worse"
