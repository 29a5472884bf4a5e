"""A site whose batch system is processes of this machine: pilots come when jobs wait, and go when none do."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.sites import PilotSettings, Site, SubmissionState
from mendflow.core.model.views import JobQuery
from mendflow.server.access import AccessToken, token_hash
from mendflow.services.api.domain import Domain
from mendflow.wiring import ServerOptions, running_server
from tests.patience import PATIENCE_S

ADMIN = (AccessToken("ann", frozenset({"admin"}), token_hash("anns")),)


def options(folder: Path) -> ServerOptions:
    return ServerOptions(data=folder / "data", tokens=ADMIN, lease_ms=4_000, sites_look_ms=200)


def site(**settings: object) -> Site:
    pilots = PilotSettings(idle_exit_ms=1_000, away_exit_ms=20_000)
    return Site(**{"name": "here", "max_pilots": 2, "pilots": pilots, **settings})  # type: ignore[arg-type]  # as a test gives them


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await holds():
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE_S} s for {what}") from None


async def start(domain: Domain, turns: int) -> str:
    loop = ForEach(name="loop", items=list(range(turns)), body=JobActivity(name="a", command="sleep 0.2; pwd"))
    await domain.deploy(Flow(name=FlowName("many"), body=loop))
    return (await domain.start("many", {}, who="ann")).id


async def completed(domain: Domain, case: str) -> bool:
    return (await domain.case(case)).status == "completed"


async def nobody_left(domain: Domain) -> bool:
    return not (await domain.site("here")).submissions


async def ended(domain: Domain) -> None:
    """Leave no pilot behind."""
    await domain.remove_site("here", who="ann", force=True)
    await until(lambda: _gone(domain), "the site to be gone")


async def _gone(domain: Domain) -> bool:
    return not await domain.sites()


async def test_pilots_come_when_jobs_wait_and_go_when_none_do(tmp_path: Path) -> None:  # PJ-8
    async with running_server(options(tmp_path)) as server:
        domain = server.domain
        await domain.put_site(site(), who="ann")
        case = await start(domain, 12)
        await until(lambda: completed(domain, case), "all jobs to be done")
        pilots = {attempt.pilot for job in await domain.jobs(JobQuery(case=case)) for attempt in job.history}
        assert 1 <= len(pilots) <= 2, "there may be two at a time"
        await until(lambda: nobody_left(domain), "the pilots to leave")
        view = await domain.site("here")
        assert {each.how for each in view.endings} == {"left"} and view.failures == 0
        assert view.left_this_hour == view.site.submissions_per_hour - len(view.endings)
        token = tmp_path / "data" / "sites" / "here" / "token"
        assert token.stat().st_mode & 0o777 == 0o600
        await ended(domain)


async def test_pilots_outlive_their_server_and_the_next_one_sends_no_others(tmp_path: Path) -> None:
    wanted = site(min_pilots=1, max_pilots=1)
    async with running_server(options(tmp_path)) as server:
        await server.domain.put_site(wanted, who="ann")
        await until(lambda: _works(server.domain), "the pilot to be heard")
        [before] = (await server.domain.site("here")).submissions
        url = server.url
    port = int(url.rpartition(":")[2])
    async with running_server(msgspec.structs.replace(options(tmp_path), port=port)) as again:
        case = await start(again.domain, 3)
        await until(lambda: completed(again.domain, case), "the jobs to be done by the pilot that was there")
        view = await again.domain.site("here")
        assert [each.name for each in view.submissions] == [before.name] and not view.endings
        await ended(again.domain)


async def _works(domain: Domain) -> bool:
    return any(each.state is SubmissionState.WORKING for each in (await domain.site("here")).submissions)


async def test_a_site_whose_pilots_cannot_work_is_paused_and_no_job_is_lost_to_it(tmp_path: Path) -> None:  # PJ-2
    checks = PilotChecks(executables=("no-such-program",))
    async with running_server(options(tmp_path)) as server:
        domain = server.domain
        bad = site(failures_max=2, min_pilots=2, pilots=PilotSettings(checks=checks))
        await domain.put_site(bad, who="ann")
        case = await start(domain, 2)
        await until(lambda: _paused(domain), "the site to be paused")
        view = await domain.site("here")
        assert view.paused is not None and "no-such-program" in view.paused.why
        assert {each.how for each in view.endings} == {"unfit"}
        await until(lambda: _alerted(domain), "an alert")
        [alert] = await domain.alerts()
        assert alert.kind == "site-paused" and "no-such-program" in alert.sentence
        assert all(not job.history for job in await domain.jobs(JobQuery(case=case))), "no job was given to any of them"
        await domain.put_site(site(), who="ann")
        await domain.resume_site("here", who="ann")
        await until(lambda: completed(domain, case), "the jobs to be done when the site was put right")
        assert await domain.alerts() == []
        await ended(domain)


async def _paused(domain: Domain) -> bool:
    return (await domain.site("here")).state == "paused"


async def _alerted(domain: Domain) -> bool:
    return bool(await domain.alerts())
