"""Detects slots that hold work and are silent: a job may stop the very process that watches it.

A slot with a running attempt reports every second. If it is silent for longer and is stopped, it gets SIGCONT, once. If
it is stopped again for the same work, or is silent for very long, it is killed with all its processes and replaced.
Silence counts only while the agent itself was running."""

import signal
from collections.abc import Iterable

from mendflow.pilot.agent.slot_link import SlotLink
from mendflow.pilot.slot.monitor import now_ms
from mendflow.pilot.slot.processes import send, stands_still

SILENT_MS = 3_000
DEAF_MS = 60_000
WELL_AGAIN_MS = 60_000
ABSENT_MS = 1_000


class SlotHealthCheck:
    def __init__(self) -> None:
        self._looked_at = self._there_since = now_ms()
        self._roused_at: dict[SlotLink, int] = {}

    def look(self, links: Iterable[SlotLink]) -> list[SlotLink]:
        """The slots to replace. Call it several times a second."""
        now = now_ms()
        if now - self._looked_at > ABSENT_MS:
            self._there_since = now
        self._looked_at = now
        return [link for link in links if link.alive and self._is_hopeless(link, now)]

    def _is_hopeless(self, link: SlotLink, now: int) -> bool:
        roused_at = self._roused_at.get(link, 0)
        if not link.holds or (roused_at and now - roused_at > WELL_AGAIN_MS):
            self._roused_at.pop(link, None)
            roused_at = 0
        silent_ms = now - max(link.last_message_at, self._there_since, roused_at) if link.holds else 0
        if silent_ms < SILENT_MS or not link.pid:
            return False
        if not stands_still(link.pid):
            return silent_ms > DEAF_MS
        if roused_at:
            return True
        self._roused_at[link] = now
        send([link.pid], signal.SIGCONT)
        return False
