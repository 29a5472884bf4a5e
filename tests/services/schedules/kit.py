"""What tests of schedules are made of: a flow of one job, a pilot that runs it, and the cases that were started."""

import asyncio

import msgspec

from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.schedules import ScheduleDocument, ScheduleSpec
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.schedules.store import SCHEDULE_KIND
from mendflow.sim.machines import BEGINNING
from mendflow.stores.contract import Store
from tests.services.cluster.kit import Cluster, keep_running, pilot_of

MINUTE = 60_000
FLOW = Flow(name=FlowName("nightly"), inputs={"at": Input(default="")}, body=JobActivity(name="work", command="true"))
EVERY_MINUTE = ScheduleSpec(name="tick", flow="nightly", cron="* * * * *", inputs={"at": "${{ schedule.time }}"})
FIRST = (BEGINNING // MINUTE + 1) * MINUTE
"""The first due time of a world."""


async def cases_of(store: Store) -> list[CaseDocument]:
    """The cases that schedules have started, by their keys."""
    await store.refresh()
    cases = [msgspec.json.decode(each.body, type=CaseDocument) async for each in store.scan("case")]
    return sorted((each for each in cases if not each.void and each.key.startswith("schedule/")), key=_key)


def _key(case: CaseDocument) -> str:
    return case.key


async def schedule_in(store: Store, name: str = "tick") -> ScheduleDocument:
    found = await store.get(SCHEDULE_KIND, name)
    assert found is not None
    return msgspec.json.decode(found.body, type=ScheduleDocument)


async def work(cluster: Cluster, *names: str, takes_s: float = 0.0) -> None:
    """A pilot that runs whatever there is, for ever; each job takes so long."""
    pilot = pilot_of(cluster, *names)
    while True:
        try:
            await pilot.sync(want=0 if pilot.held else 1)
            if pilot.held:
                await keep_running(pilot, takes_s, every_s=2)
                await pilot.exchange({"work": Outcome()})
        except RequestError:
            pass
        await asyncio.sleep(0.3)
