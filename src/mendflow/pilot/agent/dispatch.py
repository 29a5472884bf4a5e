"""Assigns ready attempts to slots.

Idle slots come first; while jobs are short, each slot also gets a few ahead. A job that asks for GPUs waits until
enough are free, and keeps its own until it ends or is returned."""

from mendflow.pilot.agent.attempts import Attempts, HeldAttempt
from mendflow.pilot.agent.devices import Devices
from mendflow.pilot.agent.prefetch import SHORT_MS, slot_depth
from mendflow.pilot.agent.preparation import AttemptPreparer
from mendflow.pilot.agent.slot_pool import SlotPool
from mendflow.pilot.slot.messages import FromSlot


class AttemptDispatcher:
    def __init__(self, attempts: Attempts, slot_pool: SlotPool, preparer: AttemptPreparer, devices: Devices) -> None:
        self._attempts = attempts
        self._slot_pool = slot_pool
        self._preparer = preparer
        self._devices = devices

    def dispatch(self, mean_ms: float | None) -> bool:
        """Assign attempts to slots; True if one of them had been reported as staging. A slot that runs a long attempt
        gets no more: it would return them."""
        ready, staged = self._attempts.ready, False
        now = self._slot_pool.now_ms()
        links = [link for link in self._slot_pool.open if link.busy_ms(now) <= SHORT_MS]
        depth = slot_depth(mean_ms)
        waiting: list[HeldAttempt] = []
        while ready and links:
            link = min(links, key=lambda one: len(one.holds))
            if len(link.holds) >= depth:
                break
            held = ready.popleft()
            if held.suspended or not self._has_room(held):
                waiting.append(held)
                continue
            assert held.work is not None
            staged |= held.state == "staging"
            held.link, held.slot, held.state = link, link.number, "held" if link.holds else "running"
            link.run(held.work)
        ready.extendleft(reversed(waiting))
        return staged

    def _has_room(self, held: HeldAttempt) -> bool:
        """Whether the resources for the attempt are free; reserves its GPUs."""
        if not self._attempts.fits(held, self._slot_pool.links.values()):
            return False
        wanted = held.resources.gpus
        if not wanted or held.devices:
            return True
        given = self._devices.take(wanted)
        if given is None:
            return False
        if given:
            held.devices = given
            self._preparer.with_devices(held, self._devices.variable)
        return True

    def free_devices(self, held: HeldAttempt) -> None:
        if held.devices:
            self._devices.release(held.devices)
            held.devices = ()

    def claim_devices(self, hello: FromSlot) -> None:
        """Reserve GPUs of a job that runs in a slot of an earlier agent."""
        names = tuple(hello.devices.split(","))
        self._devices.claim(names)
        for heartbeat in hello.heartbeats:
            self._attempts.all[(heartbeat.job, heartbeat.fence)].devices = names
