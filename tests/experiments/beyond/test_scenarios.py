"""What goes beyond the paper, played small: what each scenario is there to show."""

import json
from pathlib import Path

import pytest

from experiments.beyond import SCENARIOS, beyond
from experiments.beyond.domains import domains
from experiments.beyond.findings import ScenarioFindings, ScenarioPlan
from experiments.beyond.lives import SAYS, lives
from experiments.beyond.million import million
from experiments.beyond.policies import BATCHES, policies
from experiments.beyond.priorities import priorities
from experiments.beyond.report import DEFAULT_SCENARIOS
from experiments.beyond.sharing import PAPER_SCHEMES, sharing
from experiments.beyond.sites import SITES, sites
from mendflow.core.model.errors import InvalidRequest


def plan(jobs: int = 0) -> ScenarioPlan:
    return ScenarioPlan(seeds=(1,), jobs=jobs)


@pytest.mark.full
@pytest.mark.parametrize("workflow", ["W2", "W3"])
def test_caches_shared_between_hosts_serve_more_reads_than_any_scheme_of_the_paper(  # PJ-11
    workflow: str, shared: ScenarioFindings
) -> None:
    numbers = shared.numbers
    best = max(numbers[f"{workflow} {scheme}"] for scheme in PAPER_SCHEMES)
    assert numbers[f"{workflow} global"] > 0.99 > best
    assert numbers[f"{workflow} factor"] == pytest.approx(numbers[f"{workflow} global"] / best, rel=0.01)
    assert f"{numbers[f'{workflow} factor']:.2f} times as many" in shared.sentence


@pytest.fixture(scope="module")
def shared() -> ScenarioFindings:
    return sharing(plan())


@pytest.mark.full
def test_what_is_read_once_does_not_drive_out_what_is_in_fashion_where_a_policy_sees_to_it() -> None:  # PJ-11
    found = policies(plan(jobs=10 * BATCHES)).numbers
    assert set(found) == {"lru", "lfu", "lru-k", "cost"}
    assert min(found["lru-k"], found["cost"]) > max(found["lru"], found["lfu"])


@pytest.mark.full
def test_jobs_that_say_how_long_they_take_are_not_cut_short_by_the_end_of_a_pilot() -> None:  # PJ-11
    found = lives(plan(jobs=60)).numbers
    says, silent = SAYS
    assert found[f"30 min, {says}"] == found[f"1 h, {says}"] == 0
    assert found[f"30 min, {silent}"] > 0
    assert found[f"without end, {silent}"] == 0


@pytest.mark.full
def test_jobs_that_go_by_data_and_capacity_are_done_sooner_than_those_that_stay_at_home() -> None:  # FM-4
    found = domains(plan(jobs=100))
    numbers = found.numbers
    assert numbers["by data and capacity, turnaround_s"] < numbers["at home, turnaround_s"]
    fetched = {row[0]: float(row[3].removesuffix(" GiB")) for row in found.table.rows}
    assert fetched["by data and capacity"] < min(fetched["at random"], fetched["by capacity"])


@pytest.mark.full
def test_urgent_jobs_are_done_first_and_cost_the_others_no_more_than_their_own_time() -> None:  # PJ-11
    found = priorities(plan(jobs=1_000)).numbers
    assert found["urgent, times as soon"] > 2
    assert found["patient, times as long"] < 1.15


@pytest.mark.full
def test_the_same_pilots_on_ten_sites_take_hardly_longer_than_on_one() -> None:  # PJ-11
    found = sites(plan(jobs=600)).numbers
    assert len(found) == len(SITES)
    assert found["10 sites, turnaround_s"] < 1.5 * found["one site, turnaround_s"]


@pytest.mark.full
def test_the_million_is_played_with_as_many_jobs_as_wanted() -> None:  # PJ-11
    found = million(plan(jobs=3_000))
    assert found.numbers["jobs"] == 3_000
    assert ("status", "completed") in found.table.rows
    assert "3,000 jobs on 100 pilots of 10 sites" in found.sentence


@pytest.mark.full
def test_the_same_seed_gives_the_same_bytes_of_all_but_what_was_measured_here(tmp_path: Path) -> None:
    one, two = (
        beyond(scenarios=("priorities", "million"), jobs=400, seeds=1, folder=tmp_path / name)
        for name in ("one", "two")
    )
    assert one.numbers == two.numbers
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert {"beyond.html", "million.svg", "measured.json"} < names
    for name in sorted(names - {"measured.json"}):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_what_the_million_cost_this_machine_is_told_and_has_a_file_of_its_own(tmp_path: Path) -> None:
    report = beyond(scenarios=("million",), jobs=400, seeds=1, folder=tmp_path)
    assert set(report.measured["million"]) == {"wall_s", "processor_s", "peak_bytes"}
    assert json.loads((tmp_path / "measured.json").read_text()) == report.measured
    assert [table.title for table in report.tables] == ["A million jobs", "What it cost this machine"]
    assert report.sentences[1].startswith("On this machine that took ")


def test_one_seed_has_no_deviation_to_tell_of(tmp_path: Path) -> None:
    report = beyond(scenarios=("priorities",), jobs=200, seeds=1, folder=tmp_path)
    assert "±" not in str(report.tables)
    text = (tmp_path / "beyond.html").read_text()
    assert "One seed." in text
    assert "whiskers" not in text


def test_a_report_has_a_sentence_and_a_table_of_each_scenario_and_says_what_was_written(tmp_path: Path) -> None:
    told: list[str] = []
    report = beyond(scenarios=("priorities",), jobs=200, seeds=1, folder=tmp_path, tell=told.append)
    assert len(report.sentences) == len(report.tables) == 1
    assert set(report.numbers) == {"priorities"}
    assert {Path(each).name for each in report.written} == {"priorities.svg", "priorities.csv", "beyond.html"}
    assert told[0].startswith("priorities: ")


def test_a_scenario_that_there_is_not_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="there is no scenario 'billion'; choose among sharing, policies"):
        beyond(scenarios=("billion",), folder=tmp_path)


def test_the_million_is_played_only_when_it_is_asked_for() -> None:
    assert set(SCENARIOS) - set(DEFAULT_SCENARIOS) == {"million"}
