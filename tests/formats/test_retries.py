"""`retries` as people write it: a number, or waits and causes."""  # DU-7

import pytest

from mendflow.core.model.flow import JobActivity, Parallel
from mendflow.core.model.jobs import RetryRule
from tests.formats.conftest import Complaints, Reader


@pytest.mark.parametrize(
    ("retries", "times", "rules"),
    [
        ("4", 4, ()),
        ("0", 0, (RetryRule(times=0),)),
        ("{times: 4}", 0, (RetryRule(times=4),)),
        (
            "{times: 4, wait: 1 s, factor: 3, on: [75, memory]}",
            0,
            (RetryRule(times=4, wait_ms=1000, factor=3.0, on=("75", "memory")),),
        ),
        ("{times: 1, on: time}", 0, (RetryRule(times=1, on=("time",)),)),
        (
            "[{on: 75, times: 2}, {on: ValueError, times: 3}, {times: 1}]",
            0,
            (RetryRule(times=2, on=("75",)), RetryRule(times=3, on=("ValueError",)), RetryRule(times=1)),
        ),
    ],
)
@pytest.mark.parametrize("where", ["job", "defaults"])
def test_retries_say_how_often_and_after_what(
    read: Reader, retries: str, times: int, rules: tuple[RetryRule, ...], where: str
) -> None:
    text = "jobs:\n  a: {run: x, retries: R}\n" if where == "job" else "defaults: {retries: R}\njobs: {a: x}\n"
    body = read(text.replace("R}", f"{retries}}}")).body
    assert isinstance(body, Parallel) and isinstance(body.branches[0], JobActivity)
    assert (body.branches[0].retries, body.branches[0].retry) == (times, rules)


@pytest.mark.parametrize(
    ("retries", "said"),
    [
        ("{wait: 1 s}", "2:24: `times` is missing"),
        ("{times: 2, on: memry}", "2:39: `memry` is no cause of failures"),
        ("{times: 2, on: 0}", "2:39: an exit code from 1 to 255, or a cause, is expected here, not the number 0"),
        ("{times: 2, on: 256}", "2:39: an exit code from 1 to 255"),
        ("{times: 2, on: '${{ 1 }}'}", "2:39: no expression can stand here"),
        ("{times: '${{ 2 }}'}", "2:32: a whole number from 0 on is expected here"),
        ("{times: 2, wait: soon}", "2:41: a duration"),
        ("{times: 2, factor: 0.5}", "2:43: a number from 1 on is expected here"),
        ("{times: 2, backoff: 2}", "2:35: a rule of `retries` has no key `backoff`"),
        ("[{times: 2}, {times: 1, on: 75}]", "2:24: a rule without `on` takes all failures; it must be the last"),
        ("{times: 2}, retry-wait: 1 s", "2:36: `retry-wait` goes with a number of `retries`"),
        ("1.5", "2:24: a whole number from 0 on is expected here"),
        ("many", "2:24: a whole number from 0 on is expected here"),
    ],
)
def test_what_makes_no_sense_has_its_place(complaints: Complaints, retries: str, said: str) -> None:
    found = complaints(f"jobs:\n  a: {{run: x, retries: {retries}}}\n")
    assert len(found) == 1 and said in found[0], found


def test_a_problem_of_the_defaults_is_told_once(complaints: Complaints) -> None:
    assert len(complaints("defaults: {retries: many}\njobs: {a: x, b: y}\n")) == 1
