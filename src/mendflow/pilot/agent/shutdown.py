"""One exchange for a pilot that cannot work where it is: it reports the reason and deregisters, without ever taking a
job."""

import asyncio
import logging
import socket
import time

import msgspec

from mendflow.core.model.sync import SYNC_VERSION, Capacity
from mendflow.pilot.agent.http import ExchangeClient, ServerAway, ServerRefused
from mendflow.pilot.agent.servers import ServerAddresses
from mendflow.pilot.files.work_folder import new_pilot_id
from mendflow.pilot.slot.messages import RawRequest

log = logging.getLogger("mendflow.pilot")

PATIENCE_S = 15.0
ANSWER_S = 5.0
PAUSE_S = 0.5
UNFIT_CHARS_MAX = 2_000


async def report_unfit(
    servers: ServerAddresses, path: str, *, why: str, host: str, site: str, submission: str, secret: str
) -> bool:
    """Report to any server; False if none answered. It uses a new pilot id, as the folder may belong to another pilot
    or be unusable."""
    machine = host or socket.gethostname()
    request = RawRequest(
        pilot=new_pilot_id(machine),
        serial=1,
        host=machine,
        site=site,
        capacity=Capacity(slots=0, cpus=0.0, memory_bytes=0, disk_bytes=0),
        want=0,
        ttl_ms=0,
        running=[],
        reports=[],
        leaving=True,
        wait_ms=0,
        heard=0,
        version=SYNC_VERSION,
        taken=None,
        knows=0,
        sent_at=0,
        submission=submission,
        submission_secret=secret,
        unfit=why[:UNFIT_CHARS_MAX],
    )
    exchanges = ExchangeClient(servers.address, path)
    servers.on_move = exchanges.move
    try:
        return await _say(servers, exchanges, msgspec.msgpack.encode(request))
    finally:
        exchanges.close()


async def _say(servers: ServerAddresses, exchanges: ExchangeClient, body: bytes) -> bool:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            await exchanges.post(body, ANSWER_S)
            return True
        except (ServerAway, ServerRefused) as error:
            if time.monotonic() > until or (isinstance(error, ServerRefused) and error.status in (401, 403)):
                log.warning("the server could not be told that this pilot stops: %s", error)
                return False
        servers.move_on()
        await asyncio.sleep(PAUSE_S)
