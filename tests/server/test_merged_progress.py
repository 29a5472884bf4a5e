"""How far rules are applied to a cause, as several servers tell it: each of its own part, and some of another time."""

from typing import Any

import msgspec

from mendflow.core.model.repair_views import ApplyResult
from mendflow.core.model.rule_views import ApplyProgress, LeftReason
from mendflow.server.fan_out import merge_applied, merge_apply_progress


def progress(application: str, started_at: int, **more: Any) -> bytes:
    known: dict[str, Any] = {"running": False, "total": 2, "done": 2, "by": "ann", **more}
    return msgspec.json.encode(ApplyProgress(group="g", application=application, started_at=started_at, **known))


def merged(*answers: bytes) -> ApplyProgress:
    by_server = {f"s{number}": answer for number, answer in enumerate(answers)}
    return msgspec.json.decode(merge_apply_progress(by_server), type=ApplyProgress)


NEVER = progress("", 0, total=0, done=0, by="")
OLD = progress("old", 1_000, taken_up=["f-1/1"], left=["f-9/1"], refused={"f-8/1": "no"}, total=9, done=9, stopped=True)


def test_ex_7_parts_of_one_application_are_told_as_one() -> None:
    here = progress("new", 90_000, taken_up=["f-2/1"], cases=["f-2"], left=["f-3/1", "f-4/1", "f-5/1"], ended_at=90_005)
    refused = {"f-4/1": "jobs of it are not over", "f-2/1": "it is not over"}
    there = progress("new", 90_003, taken_up=["f-3/1"], cases=["f-3"], left=["f-5/1"], refused=refused, ended_at=90_009)
    told = merged(here, NEVER, there)
    assert (told.started_at, told.ended_at, told.cases) == (90_000, 90_009, ["f-2", "f-3"])
    assert (told.taken_up, told.left) == (["f-2/1", "f-3/1"], ["f-5/1"])
    assert told.refused == {"f-4/1": "jobs of it are not over"}, "what one has taken up is refused by the others"


def test_ex_7_what_a_server_that_was_not_reached_still_tells_of_another_time_is_left_out() -> None:
    new = progress("new", 90_000, cases=["f-2"], ended_at=90_005, earlier=["old"])
    for told in (merged(OLD, new), merged(new, OLD), merged(NEVER, OLD, new)):
        assert (told.application, told.started_at, told.cases) == ("new", 90_000, ["f-2"])
        assert (told.total, told.done, told.left, told.refused, told.stopped) == (2, 2, [], {}, False)


def test_ex_7_it_runs_as_long_as_one_of_them_does_whatever_ran_before() -> None:
    here = progress("new", 90_000, cases=["f-2"], ended_at=90_005)
    there = progress("new", 90_003, running=True, done=1)
    told = merged(here, OLD, there)
    assert (told.running, told.total, told.done, told.ended_at, told.cases) == (True, 2, 1, 0, ["f-2"])


def test_ex_7_whose_clock_is_ahead_tells_no_earlier_application_as_the_last() -> None:
    ahead = progress("old", 92_000, cases=["f-1"], total=9, done=9, by="bob", ended_at=92_005)
    over = progress("new", 90_000, cases=["f-2"], ended_at=90_005)
    running = progress("new", 90_000, running=True, done=1, cases=["f-2"], earlier=["old"])
    for told in (merged(over, ahead), merged(running, ahead), merged(ahead, running), merged(NEVER, ahead, running)):
        assert (told.application, told.by, told.cases, told.earlier) == ("new", "ann", ["f-2"], [])
    elsewhere = progress("new", 90_000, cases=["f-2"], earlier=["old"])
    assert merged(ahead, elsewhere).application == "new", "a server that took part in both knows which was the last"


def test_ex_7_what_a_server_did_alone_is_told_alone() -> None:
    told = merged(progress("", 1_000, cases=["f-1"]), progress("", 90_000, cases=["f-2"]))
    assert (told.started_at, told.cases) == (1_000, ["f-1"]), "by the server that is asked"
    told = merged(NEVER, progress("", 1_000, cases=["f-1"]))
    assert (told.started_at, told.cases) == (1_000, ["f-1"]), "or by the one that knows"


def test_ex_7_what_a_server_has_left_of_a_case_that_it_let_go_on_is_told() -> None:
    here = ApplyResult(group="g", taken_up=["c/2/abort"], left=["c/3/abort"], cases=["c"])
    there = ApplyResult(group="g", taken_up=[], left=["c/2/abort", "c/3/abort", "d/1/abort"])
    for answers in ((here, there), (there, here)):
        by_server = {f"s{number}": msgspec.json.encode(answer) for number, answer in enumerate(answers)}
        told = msgspec.json.decode(merge_applied(by_server), type=ApplyResult)
        assert (told.taken_up, sorted(told.left), told.cases) == (["c/2/abort"], ["c/3/abort", "d/1/abort"], ["c"])
    gone_on = ApplyResult(group="g", taken_up=["c/2/abort", "c/3/abort"], left=[], cases=["c"])
    by_server = {"a": msgspec.json.encode(gone_on), "b": msgspec.json.encode(there)}
    assert msgspec.json.decode(merge_applied(by_server), type=ApplyResult).left == ["d/1/abort"]


def test_ex_7_why_a_failure_is_left_is_told_by_the_server_that_has_its_case() -> None:
    far: dict[str, LeftReason] = {"c/2/abort": "elsewhere", "d/1/abort": "elsewhere"}
    rule: dict[str, LeftReason] = {"c/2/abort": "next-try", "d/1/abort": "elsewhere"}
    here = ApplyResult(group="g", taken_up=[], left=[*far], why_left=far)
    there = ApplyResult(group="g", taken_up=[], left=[*rule], why_left=rule)
    of_before = ApplyResult(group="g", taken_up=[], left=["c/2/abort", "e/1/abort"])
    for answers in ((here, there, of_before), (of_before, there, here)):
        by_server = {f"s{number}": msgspec.json.encode(answer) for number, answer in enumerate(answers)}
        told = msgspec.json.decode(merge_applied(by_server), type=ApplyResult)
        assert (sorted(told.left), told.why_left) == (["c/2/abort", "d/1/abort", "e/1/abort"], rule)


def test_ex_7_where_a_server_that_gives_no_reason_has_left_a_failure_none_is_told() -> None:
    here = ApplyResult(group="g", taken_up=[], left=["c/2/abort"], why_left={"c/2/abort": "elsewhere"})
    home_of_before = ApplyResult(group="g", taken_up=[], left=["c/2/abort"])
    for answers in ((here, home_of_before), (home_of_before, here)):
        by_server = {f"s{number}": msgspec.json.encode(answer) for number, answer in enumerate(answers)}
        told = msgspec.json.decode(merge_applied(by_server), type=ApplyResult)
        assert (told.left, told.why_left) == (["c/2/abort"], {})


def test_ex_7_what_goes_on_elsewhere_is_left_for_the_reason_that_is_told_there() -> None:
    here = ApplyResult(group="g", taken_up=[], left=["c/3/abort"], why_left={"c/3/abort": "no-rule"})
    there = ApplyResult(group="g", taken_up=[], left=["c/3/abort"], why_left={"c/3/abort": "passed"}, cases=["c"])
    by_server = {"a": msgspec.json.encode(here), "b": msgspec.json.encode(there)}
    told = msgspec.json.decode(merge_applied(by_server), type=ApplyResult)
    assert (told.left, told.why_left) == (["c/3/abort"], {"c/3/abort": "passed"})


def test_ex_7_where_none_was_applied_nothing_is_told() -> None:
    assert merged(NEVER, NEVER).started_at == 0
