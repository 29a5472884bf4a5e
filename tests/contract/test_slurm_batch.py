"""A real Slurm, through PSI/J, keeps what every batch system promises; and what it does not keep, is survived."""

from collections.abc import Iterator

import pytest

from mendflow.batch.router import BatchSystemRouter
from mendflow.core.model.sites import BatchSystemUnavailable, Site, SubmitRejected, SubmitSkipped, SubmitUncertain
from tests.contract.batch_systems import BatchContract, doing, running, site_of, submission, until
from tests.servers.slurm import Slurm

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    slurm = Slurm()
    slurm.start()
    yield slurm
    slurm.stop()


@pytest.fixture
def site(slurm: Slurm) -> Site:
    settings = {"SLURM_CONF": slurm.environment["SLURM_CONF"]}
    return site_of("slurm", environment=settings, wall_ms=600_000, timeout_ms=10_000)


@pytest.fixture(autouse=True)
def emptied(slurm: Slurm) -> Iterator[None]:
    yield
    slurm.run("scancel", "--user=root")
    slurm.until(lambda: not slurm.living(), "all jobs to be over")


class TestSlurm(BatchContract):
    async def test_what_it_refuses_is_refused_and_the_rest_is_not_tried(
        self, systems: BatchSystemRouter, slurm: Slurm
    ) -> None:
        environment = {"SLURM_CONF": slurm.environment["SLURM_CONF"]}
        site = site_of("slurm", environment=environment, queue="nowhere")
        answers = await systems.submit(site, [submission(site, 1), submission(site, 2)])
        first = answers[submission(site, 1).name]
        assert isinstance(first, SubmitRejected) and "partition" in first.why
        assert isinstance(answers[submission(site, 2).name], SubmitSkipped) and await systems.find(site) == {}

    async def test_a_controller_that_is_away_is_not_believed_to_have_nothing(
        self, systems: BatchSystemRouter, site: Site, slurm: Slurm
    ) -> None:
        await systems.submit(doing(site, "sleep 600"), [submission(site, 1)])
        await until(systems, site, lambda found: running(found) == 1)
        slurm.kill_controller()
        try:
            with pytest.raises(BatchSystemUnavailable, match="slurm"):
                await systems.find(site)
            answers = await systems.submit(site, [submission(site, 2), submission(site, 3)])
            assert isinstance(answers[submission(site, 2).name], SubmitUncertain | SubmitRejected)
            assert isinstance(answers[submission(site, 3).name], SubmitSkipped)
        finally:
            slurm.start_controller()

    async def test_a_pilot_is_not_started_a_second_time_by_itself(
        self, systems: BatchSystemRouter, site: Site, slurm: Slurm
    ) -> None:
        await systems.submit(doing(site, "sleep 600"), [submission(site, 1)])
        [job] = slurm.jobs(submission(site, 1).name)
        assert "Requeue=0" in slurm.run("scontrol", "show", "job", str(job.id))
