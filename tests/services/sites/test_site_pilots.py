"""Pilots of sites in a whole house: what the exchange hears of them, and what people are not bothered with."""

import msgspec
import pytest

from mendflow.core.model.ids import PilotId
from mendflow.core.model.sites import Site, SiteDocument
from mendflow.core.model.sync import Capacity, SyncRequest
from mendflow.core.scheduling import submissions
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.pilot_records import PilotRecord

CAPACITY = Capacity(slots=2, cpus=2.0, memory_bytes=1 << 30, disk_bytes=1 << 30)


def request(serial: int, name: str, **said: object) -> SyncRequest:
    told = {"pilot": PilotId("p-1"), "host": "node", "site": "t0", "capacity": CAPACITY, "want": 1}
    return SyncRequest(**{**told, "serial": serial, "submission": name, **said})  # type: ignore[arg-type]  # as a test has it


async def submitted(domain: Domain, server: Server) -> tuple[str, dict[str, str]]:
    """The name and the secret of a pilot that was written down for a site, as the monitor does it."""
    await domain.put_site(Site(name="t0", failures_max=1), who="ann")

    def with_one(known: SiteDocument) -> SiteDocument:
        return submissions.reserve(submissions.with_key(known, "of t0"), ["jobs"], now=1, by="one")[0]

    document = await server.runtime.sites.site_store.change("t0", with_one)
    assert document is not None
    [name] = document.open
    return name, {"submission_secret": submissions.secret_of(document, name)}


async def test_a_pilot_says_its_name_and_is_shown_with_it(domain: Domain, server: Server) -> None:  # PJ-8
    name, secret = await submitted(domain, server)
    await domain.sync(request(1, name, **secret))
    await server.runtime.sites.monitor.wait_reports_written()
    [view] = await domain.pilots()
    [working] = (await domain.site("t0")).submissions
    assert view.submission == name and working.pilot == view.id and (await domain.site("t0")).idle == 1
    await domain.sync(request(2, name, leaving=True, **secret))
    await server.runtime.sites.monitor.wait_reports_written()
    assert [each.how for each in (await domain.site("t0")).endings] == ["left"]


async def test_a_pilot_that_cannot_work_gets_no_job_and_its_site_hears_why(domain: Domain, server: Server) -> None:
    # PJ-2
    name, secret = await submitted(domain, server)
    answer = await domain.sync(request(1, name, unfit="no program tar", leaving=True, want=0, **secret))
    await server.runtime.sites.monitor.wait_reports_written()
    view = await domain.site("t0")
    assert not answer.jobs and not await domain.pilots()
    assert view.state == "paused" and view.endings[0].why == "no program tar"
    [alert] = await domain.alerts()
    assert alert.kind == "site-paused" and alert.subject == "t0"


@pytest.mark.parametrize("more", [{}, {"submission_secret": "0" * 64}, {"submission_secret": "ä"}], ids=str)
async def test_a_pilot_without_the_secret_of_a_submission_says_nothing_of_it(
    domain: Domain, server: Server, more: dict[str, str]
) -> None:  # SE-2
    name, secret = await submitted(domain, server)
    before = (await server.runtime.sites.site_store.get("t0")).document
    unfit: dict[str, object] = {"unfit": "ask evil.example", "leaving": True}
    leaves: dict[str, object] = {"leaving": True}
    for serial, said in enumerate(({}, unfit, leaves), 1):
        await domain.sync(request(serial, name, pilot=PilotId("p-evil"), **said, **more), who="eve")
    await domain.sync(request(9, name, pilot=PilotId("p-evil"), **more), who="eve")
    await server.runtime.sites.monitor.wait_reports_written()
    assert (await server.runtime.sites.site_store.get("t0")).document == before
    [evil] = await domain.pilots()
    assert evil.submission == "", "what counts as heard is only who was submitted"
    told = [notice.message for notice in await domain.notices() if name in notice.message]
    assert told == [
        f"pilot p-evil with the token eve says that site t0 has submitted it as {name}, and does not have the secret of"
        " that; what it says of it is ignored"
    ]
    await domain.sync(request(1, name, **secret), who="ann")
    assert {view.id: view.submission for view in await domain.pilots()} == {"p-evil": "", "p-1": name}


async def test_the_secret_of_one_submission_is_not_that_of_another(domain: Domain, server: Server) -> None:  # SE-2
    name, secret = await submitted(domain, server)
    other = name.replace("-1-", "-2-")
    await domain.sync(request(1, other, **secret))
    await server.runtime.sites.monitor.wait_reports_written()
    [view] = await domain.pilots()
    assert view.submission == "" and list((await server.runtime.sites.site_store.get("t0")).document.open) == [name]


async def test_secrets_are_shown_to_nobody(domain: Domain, server: Server) -> None:  # SE-2
    name, secret = await submitted(domain, server)
    await domain.sync(request(1, name, **secret))
    shown = msgspec.json.encode([await domain.pilots(), await domain.sites(), await domain.site("t0")])
    assert secret["submission_secret"].encode() not in shown and b"of t0" not in shown


async def test_a_pilot_that_was_started_by_hand_may_have_any_other_name(domain: Domain) -> None:
    await domain.sync(request(1, "mine"))
    assert [view.submission for view in await domain.pilots()] == ["mine"] and not await domain.notices()


async def test_a_pilot_that_was_submitted_and_is_gone_is_its_sites_business(server: Server) -> None:
    monitor = server.runtime.monitor
    for name, submission in (("by-hand", ""), ("submitted", "mendflow-t0-1-a")):
        pilot = PilotRecord(PilotId(name))
        pilot.hear(request(1, submission), server.clock.now())
        monitor.pilot_lost(pilot)
    await monitor.look()
    assert [alert.subject for alert in await monitor.alerts.list(every=True, limit=10)] == ["by-hand"]
