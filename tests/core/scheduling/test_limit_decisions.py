"""Who may use named limits, decided from their documents alone."""

from mendflow.core.model.ids import JobId
from mendflow.core.model.named_limits import LimitDemand, LimitDocument, NamedLimits
from mendflow.core.scheduling.limit_decisions import (
    LEFT_TO_OTHERS_MS,
    Grantor,
    HoldRequest,
    decide_holds,
    why_limited,
    with_demand,
    without_hold,
)

EAST = Grantor("east", 8000)


def request(job: str, named: NamedLimits = (("x", 1),), *, fence: int = 1, since: int = 0) -> HoldRequest:
    return HoldRequest(job=JobId(job), fence=fence, named=named, since=since)


def test_a_job_gets_all_that_it_uses_or_nothing() -> None:
    documents = {"x": LimitDocument(name="x", count=1), "y": LimitDocument(name="y", count=0)}
    decision = decide_holds(documents, [request("a/1", (("x", 1), ("y", 1))), request("a/2")], EAST, now=0)
    assert decision.granted == {"a/2"}
    assert list(decision.changed) == ["x"] and list(decision.changed["x"].holds) == ["a/2"]


def test_a_limit_that_nobody_has_set_lets_nothing_start() -> None:
    decision = decide_holds({"x": LimitDocument(name="x")}, [request("a/1")], EAST, now=0)
    assert not decision.granted and not decision.changed


def test_a_job_that_is_granted_again_holds_once_and_by_its_new_fence() -> None:
    documents = {"x": LimitDocument(name="x", count=1)}
    documents |= decide_holds(documents, [request("a/1")], EAST, now=0).changed
    again = decide_holds(documents, [request("a/1", fence=2)], Grantor("west", 8000), now=5)
    assert again.granted == {"a/1"} and again.changed["x"].used == 1
    hold = again.changed["x"].holds[JobId("a/1")]
    assert (hold.fence, hold.server) == (2, "west")


def test_the_end_of_an_old_attempt_does_not_give_back_what_the_new_one_holds() -> None:
    documents = {"x": LimitDocument(name="x", count=1)}
    held = decide_holds(documents, [request("a/1", fence=2)], EAST, now=0).changed["x"]
    assert without_hold(held, JobId("a/1"), 1, now=1) is held
    assert without_hold(held, JobId("a/1"), 2, now=1).used == 0


def test_what_was_given_back_is_left_for_a_moment_to_the_server_whose_jobs_waited_longer() -> None:
    document = LimitDocument(name="x", count=1, freed_at=1000)
    document = with_demand(document, "west", LimitDemand(jobs=3, since=10, at=900), now=900)
    later = request("a/1", since=500)
    assert not decide_holds({"x": document}, [later], EAST, now=1001).granted
    assert decide_holds({"x": document}, [later], Grantor("west", 8000), now=1001).granted
    assert decide_holds({"x": document}, [request("a/2", since=5)], EAST, now=1001).granted, "it has waited longer"
    assert decide_holds({"x": document}, [later], EAST, now=1000 + LEFT_TO_OTHERS_MS).granted, "nobody took it"


def test_the_reason_says_who_uses_it_that_it_is_too_small_or_that_nobody_has_set_it() -> None:
    documents = {"x": LimitDocument(name="x", count=1)}
    assert why_limited((("x", 1),), documents) == ("", False)
    assert why_limited((("y", 1),), documents)[0].startswith("it waits for limit y, which nobody has set")
    assert why_limited((("x", 2),), documents) == ("it uses 2 of limit x, and the limit is 1", True)
    documents |= decide_holds(documents, [request("a/1")], EAST, now=0).changed
    assert why_limited((("x", 1),), documents) == ("it waits for limit x: 1 of 1 are in use (by a/1)", False)
