"""A real Grid Engine keeps what every batch system promises; and what it does not keep, is survived."""

from collections.abc import Iterator

import pytest

from mendflow.batch.router import BatchSystemRouter
from mendflow.core.model.sites import BatchSystemUnavailable, Site, SubmitRejected, SubmitSkipped, SubmitUncertain
from tests.contract.batch_systems import BatchContract, doing, running, site_of, submission, until
from tests.servers.gridengine import PROGRAMS, GridEngine

pytestmark = pytest.mark.gridengine


@pytest.fixture(scope="module")
def engine() -> Iterator[GridEngine]:
    engine = GridEngine()
    engine.start()
    yield engine
    engine.stop()


@pytest.fixture
def site(engine: GridEngine) -> Site:
    return site_in(engine, wall_ms=600_000)


def site_in(engine: GridEngine, **settings: object) -> Site:
    return site_of("gridengine", environment=engine.settings, commands=str(PROGRAMS), timeout_ms=10_000, **settings)


@pytest.fixture(autouse=True)
def emptied(engine: GridEngine) -> Iterator[None]:
    yield
    engine.run("qstat")  # it is there
    engine.clear()


class TestGridEngine(BatchContract):
    async def test_what_it_refuses_is_refused_and_the_rest_is_not_tried(
        self, systems: BatchSystemRouter, engine: GridEngine
    ) -> None:  # PJ-8
        site = site_in(engine, queue="nowhere")
        answers = await systems.submit(site, [submission(site, 1), submission(site, 2)])
        first = answers[submission(site, 1).name]
        assert isinstance(first, SubmitRejected) and 'unknown queue "nowhere"' in first.why
        assert isinstance(answers[submission(site, 2).name], SubmitSkipped) and await systems.find(site) == {}

    async def test_a_qmaster_that_is_away_is_not_believed_to_have_nothing(
        self, systems: BatchSystemRouter, site: Site, engine: GridEngine
    ) -> None:  # PJ-8
        long = doing(site, "sleep 600")
        await systems.submit(long, [submission(site, 1)])
        await until(systems, long, lambda found: running(found) == 1)
        engine.kill_master()
        try:
            with pytest.raises(BatchSystemUnavailable, match="qmaster"):
                await systems.find(site)
            answers = await systems.submit(site, [submission(site, 2), submission(site, 3)])
            assert isinstance(answers[submission(site, 2).name], SubmitUncertain)
            assert isinstance(answers[submission(site, 3).name], SubmitSkipped)
        finally:
            engine.start_master()
        await until(systems, long, lambda found: running(found) == 1)

    async def test_a_pilot_ends_at_its_wall_time(self, systems: BatchSystemRouter, engine: GridEngine) -> None:  # PJ-8
        site = doing(site_in(engine, wall_ms=3_000), "sleep 600")
        await systems.submit(site, [submission(site, 1)])
        await until(systems, site, lambda found: running(found) == 1)
        await until(systems, site, lambda found: running(found) == 0)

    async def test_one_that_cannot_be_started_waits_and_says_so(
        self, systems: BatchSystemRouter, engine: GridEngine
    ) -> None:  # PJ-8
        site = doing(site_in(engine, options={"wd": "/no/such/folder"}), "true")
        await systems.submit(site, [submission(site, 1)])
        found = await until(systems, site, lambda found: any("could not start" in each.why for each in found.values()))
        assert found[submission(site, 1).name].state == "queued"
        await systems.cancel(site, [submission(site, 1).name])
