"""Periodic maintenance of a pilot's cache."""

import asyncio
import logging
from itertools import count

from mendflow.pilot.agent.agent import Agent
from mendflow.pilot.cache.shared import SharedCache

log = logging.getLogger("mendflow.pilot")

LOOK_S = 2.0
REMEMBER_AFTER = 15
"""Usage counts are saved every so many rounds, in case this process is killed."""


async def maintain_cache(cache: SharedCache, agent: Agent) -> None:
    """Run rounds of maintenance until cancelled. Files that attempts of an earlier agent may read stay pinned until
    those attempts have ended, because which files they use is not recorded."""
    inherited = set(agent.attempts.all)
    pins = cache.disk.pin_all()
    if not inherited:
        cache.disk.release(pins)
        pins = []
    for look in count(1):
        version = cache.version
        try:
            await asyncio.to_thread(cache.rebalance)
            if look % REMEMBER_AFTER == 0:
                await asyncio.to_thread(cache.disk.remember)
        except OSError as error:
            log.warning("the cache could not be cleaned up: %s", error)
        if cache.version != version:
            agent.changed.set()
        if pins and inherited.isdisjoint(agent.attempts.all):
            cache.disk.release(pins)
            pins = []
        await asyncio.sleep(LOOK_S)
