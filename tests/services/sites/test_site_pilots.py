"""Pilots of sites in a whole house: what the exchange hears of them, and what people are not bothered with."""

from mendflow.core.model.ids import PilotId
from mendflow.core.model.sites import Site
from mendflow.core.model.sync import Capacity, SyncRequest
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.pilot_records import PilotRecord

CAPACITY = Capacity(slots=2, cpus=2.0, memory_bytes=1 << 30, disk_bytes=1 << 30)


def request(serial: int, name: str, **said: object) -> SyncRequest:
    told = {"pilot": PilotId("p-1"), "host": "node", "site": "t0", "capacity": CAPACITY, "want": 1}
    return SyncRequest(**{**told, "serial": serial, "submission": name, **said})  # type: ignore[arg-type]  # as a test has it


async def submitted(domain: Domain, server: Server) -> str:
    """The name of a pilot that was written down for a site, as the monitor does it."""
    await domain.put_site(Site(name="t0", failures_max=1), who="ann")
    known = await server.runtime.sites.site_store.get("t0")
    return f"mendflow-t0-0-{known.document.mark}"


async def test_a_pilot_says_its_name_and_is_shown_with_it(domain: Domain, server: Server) -> None:  # PJ-8
    name = await submitted(domain, server)
    await domain.sync(request(1, name))
    await server.runtime.sites.monitor.wait_reports_written()
    [view] = await domain.pilots()
    [working] = (await domain.site("t0")).submissions
    assert view.submission == name and working.pilot == view.id and (await domain.site("t0")).idle == 1
    await domain.sync(request(2, name, leaving=True))
    await server.runtime.sites.monitor.wait_reports_written()
    assert [each.how for each in (await domain.site("t0")).endings] == ["left"]


async def test_a_pilot_that_cannot_work_gets_no_job_and_its_site_hears_why(domain: Domain, server: Server) -> None:
    # PJ-2
    name = await submitted(domain, server)
    answer = await domain.sync(request(1, name, unfit="no program tar", leaving=True, want=0))
    await server.runtime.sites.monitor.wait_reports_written()
    view = await domain.site("t0")
    assert not answer.jobs and not await domain.pilots()
    assert view.state == "paused" and view.endings[0].why == "no program tar"
    [alert] = await domain.alerts()
    assert alert.kind == "site-paused" and alert.subject == "t0"


async def test_a_pilot_that_was_submitted_and_is_gone_is_its_sites_business(server: Server) -> None:
    monitor = server.runtime.monitor
    for name, submission in (("by-hand", ""), ("submitted", "mendflow-t0-1-a")):
        pilot = PilotRecord(PilotId(name))
        pilot.hear(request(1, submission), server.clock.now())
        monitor.pilot_lost(pilot)
    await monitor.look()
    assert [alert.subject for alert in await monitor.alerts.list(every=True, limit=10)] == ["by-hand"]
