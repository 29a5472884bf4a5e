"""What every batch system promises, as a suite that each runs unchanged."""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path

import msgspec
import pytest

from mendflow.batch.router import BatchSystemRouter
from mendflow.batch.site_folders import SiteFolders
from mendflow.core.model.sites import BatchJobStatus, PilotSettings, PilotSubmission, Site, SubmitAccepted
from tests.patience import PATIENCE_S

_numbers = count(1)
"""A site of its own for each test: a batch system remembers what has ended."""


def submission(site: Site, number: int) -> PilotSubmission:
    return PilotSubmission(name=f"mendflow-{site.name}-{number}-abc", purpose="jobs", planned_at=0, since=0, by="one")


class BatchContract:
    """`site` is one of that batch system, whose pilots do what `before` says and nothing else."""

    @pytest.fixture
    def systems(self, tmp_path: Path) -> BatchSystemRouter:
        grounds = SiteFolders(tmp_path)
        grounds.introduce(token="t0ken", servers=lambda: ["http://127.0.0.1:9"])
        return BatchSystemRouter(grounds)

    async def test_what_was_submitted_is_found_by_its_name(
        self, systems: BatchSystemRouter, site: Site
    ) -> None:  # PJ-8
        long = doing(site, "sleep 600")
        answers = await systems.submit(long, [submission(site, 1), submission(site, 2)])
        assert [type(answer) for answer in answers.values()] == [SubmitAccepted, SubmitAccepted]
        found = await until(systems, long, lambda found: running(found) == 2)
        assert set(found) == {submission(site, 1).name, submission(site, 2).name}
        await systems.cancel(long, list(found))
        await until(systems, long, lambda found: running(found) == 0)

    async def test_what_is_taken_back_ends_and_nothing_else_does(self, systems: BatchSystemRouter, site: Site) -> None:
        long = doing(site, "sleep 600")
        await systems.submit(long, [submission(site, 1), submission(site, 2)])
        await until(systems, long, lambda found: running(found) == 2)
        await systems.cancel(long, [submission(site, 1).name, submission(site, 7).name])
        found = await until(systems, long, lambda found: running(found) == 1)
        assert found[submission(site, 2).name].state == "running"
        await systems.cancel(long, [submission(site, 2).name])
        await until(systems, long, lambda found: running(found) == 0)

    async def test_of_what_has_ended_the_last_words_are_told(self, systems: BatchSystemRouter, site: Site) -> None:
        short = doing(site, "echo no such file system >&2; exit 3")
        await systems.submit(short, [submission(site, 1)])
        found = await until(systems, short, lambda found: ended(found) == 1)
        assert "no such file system" in found[submission(site, 1).name].why

    async def test_another_site_sees_nothing_of_it(self, systems: BatchSystemRouter, site: Site) -> None:
        long = doing(site, "sleep 600")
        await systems.submit(long, [submission(site, 1)])
        other = msgspec.structs.replace(long, name=long.name + "0")
        assert await systems.find(other) == {}
        await systems.cancel(long, [submission(site, 1).name])
        await until(systems, long, lambda found: running(found) == 0)

    async def test_a_pilot_has_its_token_from_a_file_and_little_of_the_servers_environment(
        self, systems: BatchSystemRouter, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MENDFLOW_TOKEN", "the-administrators")
        monkeypatch.setenv("PGPASSWORD", "of-the-store")
        told = tmp_path / "told"
        await systems.submit(
            doing(site, f"env > {told}; tr '\\0' ' ' < /proc/$$/cmdline >> {told}"), [submission(site, 1)]
        )
        await until(systems, site, lambda found: ended(found) == 1)
        text = told.read_text()
        assert "PATH=" in text and "pilot.sh" in text
        assert not any(secret in text for secret in ("the-administrators", "of-the-store", "t0ken"))
        token = tmp_path / "sites" / site.name / "token"
        assert token.read_text() == "t0ken\n" and token.stat().st_mode & 0o777 == 0o600


def doing(site: Site, what: str) -> Site:
    """The same with pilots that do only this."""
    settings = msgspec.structs.replace(site.pilots, before=f"{what}\nexit $?")
    return msgspec.structs.replace(site, pilots=settings)


def running(found: dict[str, BatchJobStatus]) -> int:
    return sum(each.state == "running" for each in found.values())


def ended(found: dict[str, BatchJobStatus]) -> int:
    return sum(each.state == "ended" for each in found.values())


async def until(
    systems: BatchSystemRouter, site: Site, holds: Callable[[dict[str, BatchJobStatus]], bool]
) -> dict[str, BatchJobStatus]:
    found: dict[str, BatchJobStatus] = {}
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(found := await systems.find(site)) or not found:
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"it did not come to that: {found}") from None
    return found


def site_of(kind: str, **settings: object) -> Site:
    batch = msgspec.convert({"kind": kind, **settings}, type=Site.__annotations__["batch"])
    return Site(name=f"s{next(_numbers)}", batch=batch, pilots=PilotSettings())
