"""Processes of this machine keep what every batch system promises."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from mendflow.batch.router import BatchSystemRouter
from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.sites import BatchSettings, PilotSettings, Site, SubmitRejected, SubmitSkipped
from tests.contract.batch_systems import BatchContract, doing, ended, running, site_of, submission, until


class TestLocalProcesses(BatchContract):
    @pytest.fixture
    def site(self) -> Site:
        return site_of("local")

    async def test_a_number_that_another_process_has_now_is_nobodys(
        self, systems: BatchSystemRouter, site: Site, tmp_path: Path
    ) -> None:
        await systems.submit(doing(site, "exit 0"), [submission(site, 1)])
        await until(systems, site, lambda found: ended(found) == 1)
        number = tmp_path / "sites" / site.name / submission(site, 1).name / "process"
        number.write_text(str(os.getpid()))
        assert running(await systems.find(site)) == 0
        await systems.cancel(site, [submission(site, 1).name])  # or this very process would have ended

    async def test_a_pilot_that_was_started_this_moment_has_not_ended(
        self, systems: BatchSystemRouter, site: Site
    ) -> None:
        names = []
        for number in range(1, 11):
            await systems.submit(doing(site, "sleep 600"), [submission(site, number)])
            names.append(submission(site, number).name)
            assert ended(await systems.find(site)) == 0
        await systems.cancel(site, names)
        await until(systems, site, lambda found: ended(found) == len(names))

    async def test_a_pilot_that_was_killed_has_ended(
        self, systems: BatchSystemRouter, site: Site, tmp_path: Path
    ) -> None:
        await systems.submit(doing(site, "sleep 600"), [submission(site, 1)])
        await until(systems, site, lambda found: running(found) == 1)
        pid = int((tmp_path / "sites" / site.name / submission(site, 1).name / "process").read_text())
        os.killpg(pid, signal.SIGKILL)
        await until(systems, site, lambda found: ended(found) == 1)

    async def test_a_folder_that_cannot_be_written_is_a_refusal_and_says_so(
        self, systems: BatchSystemRouter, site: Site, tmp_path: Path
    ) -> None:
        (tmp_path / "sites").write_text("in the way")
        answers = await systems.submit(site, [submission(site, 1), submission(site, 2)])
        first, second = answers[submission(site, 1).name], answers[submission(site, 2).name]
        assert isinstance(first, SubmitRejected) and "folder" in first.why and isinstance(second, SubmitSkipped)

    async def test_what_has_left_is_tidied_up_and_what_works_is_not(
        self, systems: BatchSystemRouter, site: Site, tmp_path: Path
    ) -> None:
        await systems.submit(doing(site, "exit 0"), [submission(site, 1), submission(site, 2), submission(site, 3)])
        await until(systems, site, lambda found: ended(found) == 3)
        one, two, three = (submission(site, number).name for number in (1, 2, 3))
        await systems.tidy(site, keep=[one], left=[two])
        assert set(await systems.find(site)) == {one, three}, "of what failed the log is kept for a day"

    async def test_what_sites_of_like_names_have_in_the_same_folder_is_theirs(
        self, systems: BatchSystemRouter, tmp_path: Path
    ) -> None:
        batch, pilots = BatchSettings(folder=str(tmp_path / "shared")), PilotSettings(checks=PilotChecks(disk_bytes=1))
        both = [Site(name=name, batch=batch, pilots=pilots) for name in ("a", "a-1")]
        for site in both:
            await systems.submit(doing(site, "exit 0"), [submission(site, 1)])
            await until(systems, site, lambda found: ended(found) >= 1)
        name = submission(both[1], 1).name
        await systems.tidy(both[0], keep=[], left=[name])
        assert (tmp_path / "shared" / name).is_dir()
        checks = {path.name for path in (tmp_path / "shared").glob("*.json")}
        assert checks == {"a.checks.json", "a-1.checks.json"}

    async def test_a_variable_that_is_not_there_is_a_refusal_and_says_so(
        self, systems: BatchSystemRouter, site: Site
    ) -> None:
        wants = msgspec.structs.replace(site, batch=BatchSettings(environment={"FOO": "env:NOT_THERE_AT_ALL"}))
        answers = await systems.submit(wants, [submission(site, 1), submission(site, 2)])
        first, second = answers[submission(site, 1).name], answers[submission(site, 2).name]
        assert (
            isinstance(first, SubmitRejected) and "NOT_THERE_AT_ALL" in first.why and isinstance(second, SubmitSkipped)
        )
