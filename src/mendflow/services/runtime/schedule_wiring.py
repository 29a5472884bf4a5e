"""Puts the services of schedules into a runtime."""

import asyncio
from typing import TYPE_CHECKING

from mendflow.core.engine.messages import Cancel
from mendflow.core.model.ids import CaseId
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.runtime.server_context import ServerContext
from mendflow.services.schedules.assembly import ScheduleServices

if TYPE_CHECKING:
    from mendflow.services.runtime.runtime import Runtime


def schedules_of(runtime: "Runtime", server: ServerContext) -> ScheduleServices:
    async def cancel_here(case: CaseId, reason: str) -> bool:
        if case not in runtime.manager.live:
            return False
        command = Cancel(reason=reason)
        if not await runtime.recovery.steer_end(case, command):
            await runtime.manager.command(case, command)
        await runtime.ledger.settled()
        return True

    async def is_served() -> bool:
        if server.settings.schedules:
            return True
        membership = server.membership
        peers = [each.id for each in membership.live_servers() if each.schedules]
        return any(await asyncio.gather(*(membership.beats(each) for each in peers)))

    return ScheduleServices(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        wall=server.wall,
        membership=server.membership,
        triggers=runtime.triggers,
        cases=CaseStarter(runtime, server.store, server.clock, server.chance),
        cancel_here=cancel_here,
        alerts=runtime.monitor.alerts,
        notices=runtime.notices,
        hub=runtime.hub,
        is_served=is_served,
    )
