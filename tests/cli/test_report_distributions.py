"""The report shows how time, memory, processors and disk are spread over the attempts of each name."""

import re

import msgspec
import pytest

from mendflow.core.model.views import AttemptView, ItemView
from mendflow.pages.distributions import NAMES_MAX, distributions, spread
from tests.cli.test_report import an_attempt, an_item


def item(name: str, serial: int, *attempts: AttemptView) -> ItemView:
    return an_item(name, serial, list(attempts))


def attempt(ran_ms: int, **told: int | str) -> AttemptView:
    return msgspec.structs.replace(an_attempt(1, 0, ran_ms), **({"end": "completed", "started_at": 0} | told))


def tooltips(page: str) -> list[str]:
    return re.findall("<title>(.*?)</title>", page)


@pytest.mark.parametrize(
    ("values", "five"),
    [
        ([3.0], (3, 3, 3, 3, 3)),
        ([1.0, 3.0], (1, 1.5, 2, 2.5, 3)),
        ([5.0, 1.0, 2.0, 4.0, 3.0], (1, 2, 3, 4, 5)),
    ],
)
def test_the_five_values_of_a_box(values: list[float], five: tuple[float, ...]) -> None:  # DU-8
    assert msgspec.structs.astuple(spread(values)) == (*five, len(values))


def test_each_measure_that_was_taken_has_its_boxes_by_name() -> None:  # DU-8
    page = distributions(
        [
            item("align", 1, attempt(1000, peak_bytes=1_000_000, cpu_ms=2000)),
            item("align", 2, attempt(3000, peak_bytes=3_000_000, cpu_ms=3000)),
            item("sort", 3, attempt(2000, peak_bytes=2_000_000)),
        ]
    )
    assert re.findall("<h3>(.*?)</h3>", page) == ["Run time", "Processors in use", "Peak memory"], "nothing was read"
    assert tooltips(page)[0].startswith(
        "align: median 2.0 s, half of them from 1.5 s to 2.5 s, all from 1.0 s to 3.0 s"
    )
    assert tooltips(page)[2].startswith("align: median 1.5, half of them from 1.25 to 1.75"), "processors"


def test_attempts_that_failed_do_not_count() -> None:  # DU-8
    failed = attempt(60_000, end="failed")
    page = distributions([item("align", 1, failed, attempt(1000)), item("align", 2, attempt(1000))])
    assert tooltips(page)[0].endswith("all from 1.0 s to 1.0 s, 2 attempts")


def test_with_one_attempt_for_each_name_nothing_is_drawn() -> None:  # DU-8
    assert distributions([item("a", 1, attempt(1000)), item("b", 2, attempt(1000))]) == ""
    assert distributions([]) == ""


def test_a_case_with_many_names_stays_readable() -> None:  # DU-8
    many = [item(f"job-{n}", n, attempt(1000), attempt(2000)) for n in range(NAMES_MAX + 5)]
    page = distributions(many)
    assert f"The first {NAMES_MAX} names are drawn." in page and f"job-{NAMES_MAX}:" not in page
