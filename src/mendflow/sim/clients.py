"""Clients of simulated servers: each requests a case until a server has accepted it."""

import asyncio
from collections.abc import Sequence
from random import Random

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.sim.machines import Machine
from mendflow.sim.network import Network, NoAnswer
from mendflow.sim.observer import RunRecord
from mendflow.sim.servers import START_PATH, SimStartRequest, VirtualServer

PATIENCE_S = 3.0


async def start_until_accepted(
    wanted: SimStartRequest,
    servers: Sequence[VirtualServer],
    network: Network,
    observer: RunRecord,
    chance: Random,
    *,
    at_s: float,
    until_s: float,
) -> CaseId | None:
    """Request a case, from `at_s` on, of any of these servers; None if it was refused, or no server took it in time.
    That is told to the observer."""
    await asyncio.sleep(at_s)
    loop = network.loop
    process = Machine(loop, f"client {wanted.key}").start("client")
    while loop.true_s < until_s:
        server = chance.choice(servers)
        try:
            body = msgspec.json.encode(wanted)
            status, answer = await network.call(process, server.address, START_PATH, body, PATIENCE_S)
        except NoAnswer:
            status, answer = 503, b""
        if status == 200:
            observer.tell(f"acknowledged {answer.decode()}")
            return CaseId(answer.decode())
        if status < 500:
            observer.report_violation("the client", f"{wanted.key} was answered {status}: {answer.decode()}")
            return None
        await asyncio.sleep(chance.uniform(0.2, 2.0))
    observer.report_violation("liveness", f"no server takes {wanted.key}")
    return None
