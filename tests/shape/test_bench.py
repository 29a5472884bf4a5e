"""The benchmark's own parts: every subject is there, and what was measured is told as it was."""

from importlib.util import find_spec

import pytest

from bench import page, stores, table
from bench.results import ENTRIES, BenchReport, SubjectEntry, Timing
from bench.subject import Kind
from mendflow.stores.memory import MemoryStore


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_every_subject_has_its_module(entry: SubjectEntry) -> None:
    assert find_spec(entry.module) is not None


def report() -> BenchReport:
    ours = {Kind.PYTHON: [Timing(100, 0.1), Timing(100, 0.05)], Kind.CHAIN: [Timing(200, 0.4)]}
    theirs = {Kind.PYTHON: [Timing(100, 0.2)]}
    return BenchReport(
        measured={"mendflow": ours, "Ray": theirs},
        left_out={"Prefect": "it is not installed"},
        big={"jobs": 100_000, "seconds": 50.0, "server_peak_bytes": 300 * table.MB},
        match={"jobs_waiting": 1_000_000, "p99_ms": 0.4},
        rules={"rules": 10_000, "per_s": 28_000},
        proxy={"cost": 0.021, "cost_cpu": 0.019},
        machine="2 cores",
        rounds=2,
    )


def test_the_best_round_is_shown_and_compared() -> None:
    text = table.text(report())
    assert "mendflow / Ray: python 4.00 x" in text
    assert "2,000" in text
    assert "2.00" in text


def test_the_page_tells_what_was_left_out() -> None:
    page = table.page(report())
    assert "|mendflow|2,000|-|2.00|nothing|" in page
    assert "Prefect (it is not installed)" in page
    assert "100,000 Python jobs in one case: 50.0 s (2,000/s), server's peak memory 300 MB" in page
    assert "conclusions from a tree of 10,000 rules: 28,000/s on one core" in page
    assert "costs jobs that do not fail: 2.1% of the throughput, 1.9% of the processor's time" in page


def test_the_numbers_have_every_round() -> None:
    measured = table.numbers(report())["measured"]
    assert isinstance(measured, dict)
    assert measured["mendflow"]["python"] == [{"jobs": 100, "seconds": 0.1}, {"jobs": 100, "seconds": 0.05}]


def test_whoever_measures_again_replaces_its_own_section_and_no_other() -> None:
    first = page.with_section("# Benchmarks\n\nof many\n", "Stores", "10/s")
    both = page.with_section(first, "Servers", "20/s")
    assert both == "# Benchmarks\n\nof many\n\n## Stores\n\n10/s\n\n## Servers\n\n20/s\n"
    assert page.with_section(both, "Stores", "11/s") == both.replace("10/s", "11/s")
    assert page.with_head(both, "# Benchmarks\n\nof all\n") == both.replace("many", "all")


async def test_a_job_that_two_services_were_told_is_theirs_is_counted() -> None:
    store = MemoryStore()
    await store.open()
    await stores.fill(store, "by2", 40)
    got = await stores.acquire(store, "by2", 40, "one")
    assert (await stores.judge(store, "by2", 40, [got])).duplicates == 0
    twice = stores.ServiceResult("two", got.jobs[:1], 0, 0.0, 1.0)
    assert (await stores.judge(store, "by2", 40, [twice, got])).duplicates == 1
