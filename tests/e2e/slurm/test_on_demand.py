"""Pilots on a real Slurm: as many as jobs want, within what the site allows, and none where nothing can work."""

import pytest

from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.data import StorageElement
from mendflow.core.model.sites import PilotSettings
from tests.e2e.slurm.conftest import Farm

pytestmark = pytest.mark.slurm

BRIEF = PilotSettings(idle_exit_ms=1_500)


def test_pilots_come_when_jobs_wait_and_leave_when_none_are_left(farm: Farm) -> None:  # PJ-8
    farm.put(max_pilots=2, pilots=BRIEF)
    assert not farm.pilots()
    case = farm.start(6, seconds=1)
    farm.until_over(case)
    farm.each_ran_alone(6)
    assert 1 <= farm.most <= 2
    farm.until(lambda: not farm.pilots(), "Slurm to have no pilot left")
    farm.until(lambda: not farm.view().submissions, "the site to know that")
    assert {ending.how for ending in farm.view().endings} == {"left"}
    assert {job.state for job in farm.slurm.jobs()} == {"COMPLETED"}


def test_a_site_has_its_least_its_idle_and_never_more_than_its_most(farm: Farm) -> None:  # PJ-8
    farm.put(min_pilots=2, min_idle=1, max_pilots=3, pilots=BRIEF)
    farm.until(lambda: farm.view().idle == 2, "two pilots to be there without a job")
    case = farm.start(2, seconds=8)
    farm.until(lambda: (farm.view().busy, farm.view().idle) == (2, 1), "a third to be idle beside two that work")
    more = farm.start(6, seconds=1)
    farm.until_over(case)
    farm.until_over(more)
    assert farm.most == 3
    assert farm.view().left_this_hour >= 60 - 3 - len(farm.view().endings)


def test_a_site_whose_pilots_cannot_work_is_paused_and_no_job_goes_there(farm: Farm) -> None:  # PJ-2, PJ-8
    farm.client.put_element(StorageElement(name="disk", url=f"file://{farm.folder}/no-such-disk"))
    lacks = PilotChecks(executables=("no-such-program",))
    farm.put(max_pilots=2, failures_max=2, pilots=PilotSettings(checks=lacks, storage="disk"))
    case = farm.start(2, seconds=0.1)
    farm.until(lambda: farm.view().state == "paused", "the site to be paused")
    view = farm.view()
    assert view.paused is not None and "no-such-program" in view.paused.why and "no-such-disk" in view.paused.why
    assert {ending.how for ending in view.endings} == {"unfit"} and len(view.endings) <= 3
    assert any("farm" in alert.sentence for alert in farm.client.alerts())
    assert not farm.begun() and all(not job.history for job in farm.jobs(case))
    farm.put(max_pilots=2, pilots=BRIEF)
    farm.client.resume_site("farm")
    farm.until_over(case)
    farm.each_ran_alone(2)
