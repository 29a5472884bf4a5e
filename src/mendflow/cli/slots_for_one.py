"""The slots of a server that runs jobs as itself: they end once others may let jobs run, also at another server on the
store, where its tokens may have been made."""

import asyncio
import logging
from typing import Final

from mendflow.cli.pilot_supervisor import PilotSupervisor
from mendflow.wiring import RunningServer

log = logging.getLogger("mendflow.server")

LOOK_S: Final = 1.0


def job_owners_anywhere(server: RunningServer) -> set[str]:
    """Who may let jobs run at this server, or at another one whose jobs may come here."""
    assert server.access is not None
    membership = server.server.membership
    elsewhere = membership.live_servers() if membership.shared else []
    return server.access.job_owners() | {name for each in elsewhere for name in each.job_owners}


async def end_slots_for_several(
    server: RunningServer, supervisor: PilotSupervisor, keeping: asyncio.Task[None], advice: str
) -> None:
    """Wait until more than one may let jobs run here, and end the slots then. `advice` says what to do about it."""
    while len(owners := job_owners_anywhere(server)) < 2:
        await asyncio.sleep(LOOK_S)
    log.error("no more jobs are run here, because %s may let them run: %s", " and ".join(sorted(owners)[:3]), advice)
    keeping.cancel()
    await supervisor.stop()
