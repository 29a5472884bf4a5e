"""An alert about rules, or about a schedule, is of no case, and for the members of its project all the same."""

import asyncio
from contextlib import AsyncExitStack
from typing import cast, get_args

import aiohttp
import pytest
from msgspec.structs import replace

from mendflow.client import Client
from mendflow.core.model.alerts import AlertedCase, AlertKind
from mendflow.core.model.flow import Input
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import DEFAULT_PROJECT, NO_PROJECT
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.server.runner import HttpServer
from mendflow.services.api import project_lookup
from mendflow.services.base.alerts import OF_PROJECTS, AlertFinding
from tests.patience import until
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import do_jobs, job_flow
from tests.server.people import As, KnownPeople
from tests.services.recovery.kit import exlet

ERRS = "fault.data.vermilion > 1"


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


def erring(name: str) -> RuleSet:
    tree = RuleTree({1: Rule(id=1, condition=ERRS, exlet="look")}, 1)
    return RuleSet(name=name, trees={ExceptionType.ABORT: {"*": tree}}, exlets={"look": exlet("look")})


async def fails(people: As, times: int = 3) -> None:
    for _ in range(times):
        case = (await people("ann").start("night")).id
        await do_jobs(people("root"), 1, fail=True)
        await people("ann").wait(case)


async def kinds(client: Client) -> set[str]:
    return {str(each.kind) for each in await client.alerts()} - {"failure"}


async def told(client: Client) -> set[str]:
    return {each.alert.partition("/")[0] for each in await client.notifications() if each.alert} - {"failure"}


async def test_se_1_that_a_rule_errs_is_told_to_those_who_see_it(people: As) -> None:
    await people("ann").deploy(job_flow("night"))
    await people("ann").put_rules(erring("night"))
    await fails(people)
    await until(lambda: kinds(people("root")))
    await until(lambda: told(people("root")))
    for who in ("ann", "vera", "root"):
        assert await kinds(people(who)) == await told(people(who)) == {"rule-errs"}, who
    for who in ("boris", "guest", "clerk"):
        assert await kinds(people(who)) == await told(people(who)) == set(), who


async def test_se_1_that_a_default_rule_errs_is_for_administrators(people: As) -> None:
    """What it says may be of any project's cases."""
    await people("root").put_rules(erring(DEFAULT_RULES))
    await people("ann").deploy(job_flow("night"))
    await fails(people)
    await until(lambda: kinds(people("root")))
    for who in ("ann", "boris", "guest"):
        assert await kinds(people(who)) == set(), who


async def test_se_1_that_a_schedule_starts_nothing_is_told_in_its_project(
    people: As, domain: DomainUnderTest, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    await people("ann").deploy(job_flow("night"))
    await people("ann").put_schedule(ScheduleSpec(name="nightly", flow="night", cron="0 3 * * *"))
    headers = {"Authorization": "Bearer guest"}
    async with http.get(f"{served.url}/api/v1/events", headers=headers) as response:
        await response.content.readline()
        refused = AlertFinding(kind="not-started", subject="nightly", episode="1", sentence="vermilion is missing")
        gone = AlertFinding(kind="pilot-gone", subject="p", episode="1", sentence="pilot p is gone")
        for finding in (refused, gone):
            await domain._server.runtime.monitor.alerts.raise_(finding)
        heard = ""
        async with asyncio.timeout(100):
            while gone.sentence not in heard:
                heard += (await response.content.readline()).decode()
    assert "vermilion" not in heard
    assert await kinds(people("vera")) == {"not-started"}
    assert await kinds(people("guest")) == {"pilot-gone"}
    assert await kinds(people("boris")) == set()


async def test_ui_1_an_alert_tells_what_its_case_was_given_to_those_who_see_it(
    people: As, domain: DomainUnderTest
) -> None:
    wanted = {"plate": Input(), "night": Input(), "parts": Input(default=3)}
    await people("ann").deploy(replace(job_flow("measure"), inputs=wanted))
    large = ["m31"] * 4000
    over, live = [
        await people("ann").start("measure", {"plate": each, "night": large}) for each in ("a.fits", "b.fits")
    ]
    await people("ann").cancel(over.id)
    await people("ann").wait(over.id)
    findings = [
        AlertFinding(kind="no-pilot", subject=case, episode="1", sentence="it waits", case=CaseId(case))
        for case in (over.id, live.id, "measure-gone")
    ]
    for finding in findings:
        await domain._server.runtime.monitor.alerts.raise_(finding)
    for who in ("vera", "ann", "root"):
        for alerts in (await people(who).alerts(), (await people(who).overview()).alerts):
            given = {each.case: each.given for each in alerts}
            for case, plate in ((over.id, "a.fits"), (live.id, "b.fits")):
                assert given[case] == AlertedCase(
                    flow="measure", inputs={"plate": plate}, defaults={"parts": 3}, left_out=["inputs.night"]
                ), who
    assert {each.case: each.given for each in await people("root").alerts()}[CaseId("measure-gone")] is None
    assert await people("boris").alerts() == (await people("boris").overview()).alerts == []


async def test_se_1_that_an_alert_is_over_is_told_to_those_who_saw_it(
    people: As, domain: DomainUnderTest, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    """That names the alert: the rule set, the schedule, or what a failure said."""
    await people("ann").deploy(job_flow("night"))
    await people("ann").put_rules(erring("night"))
    await people("ann").put_schedule(ScheduleSpec(name="vermilion", flow="night", cron="0 3 * * *"))
    raised = (("not-started", "vermilion"), ("rule-errs", "night/abort/-/1"), ("failure", "vermilion is missing"))
    alerts = domain._server.runtime.monitor.alerts
    async with AsyncExitStack() as stack:
        streams = {
            who: await stack.enter_async_context(
                http.get(f"{served.url}/api/v1/events", headers={"Authorization": f"Bearer {who}"})
            )
            for who in ("ann", "guest")
        }
        for stream in streams.values():
            await stream.content.readline()
        for kind, subject in (*raised, ("pilot-gone", "p")):
            finding = AlertFinding(kind=cast(AlertKind, kind), subject=subject, episode="1", sentence="it is so")
            await alerts.raise_(finding)
            await alerts.close(alerts.open[finding.id])
        by_guest = await heard_until(streams["guest"], "pilot-gone/p/1")
        by_ann = await heard_until(streams["ann"], "rule-errs/night/abort/-/1")
    assert "vermilion" not in by_guest and "night/abort" not in by_guest
    assert "not-started/vermilion/1" in by_ann


async def test_se_1_an_alert_whose_project_is_not_known_is_for_administrators(
    people: As, domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_lookup, "OF_PROJECTS", {*OF_PROJECTS, "queue-grows"})
    for kind in get_args(AlertKind):
        project = await domain.project_lookup.of_alert(f"{kind}/of-nobody/1", "")
        assert project == (NO_PROJECT if kind in {*OF_PROJECTS, "queue-grows"} else DEFAULT_PROJECT), kind


async def heard_until(stream: aiohttp.ClientResponse, last: str) -> str:
    heard = ""
    async with asyncio.timeout(100):
        while last not in heard:
            heard += (await stream.content.readline()).decode()
    return heard
