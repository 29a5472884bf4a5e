"""The paper's workflows have its sizes and its dependencies, and step1 waits for all of step0."""

from collections import Counter

import pytest

from experiments.paper.experiments import PaperJobModel
from experiments.paper.settings import PARAMETERS, Setup, scene_of
from experiments.paper.workflows import WORKFLOWS, workflow
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.world import play


def played(name: str) -> GridResult:
    setup = Setup(name, "d1f1", "none")
    return play(scene_of(setup, 1), workflow(name, retry_wait_ms=1000), PaperJobModel(PARAMETERS))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_the_jobs_of_the_paper_and_reads_what_it_says(name: str) -> None:  # PJ-10
    result = played(name)
    steps = Counter(record.step for record in result.records)
    assert (steps["step0"], steps["step1"]) == WORKFLOWS[name]
    reads = {record.fetched_files for record in result.records if record.step == "step1"}
    assert reads == {2 if name == "W3" else 1}
    assert not any(record.fetched_files for record in result.records if record.step == "step0")
    assert sum(record.fetched_bytes for record in result.records) == 80 * 700_000_000


def test_no_job_of_step1_begins_before_all_of_step0_is_over() -> None:
    records = played("W3").records
    over_s = max(record.ended_s for record in records if record.step == "step0")
    assert min(record.granted_s for record in records if record.step == "step1") >= over_s
