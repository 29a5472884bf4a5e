"""The slots of a pilot: adopts them after a restart, starts missing ones, replaces dead ones, ends them."""

import asyncio
import logging
import signal
from collections.abc import Callable

from mendflow.pilot.agent.guard_process import GuardProcess
from mendflow.pilot.agent.slot_health import SlotHealthCheck
from mendflow.pilot.agent.slot_link import (
    SlotLink,
    connect_slot,
    end_slot,
    kill_own_commands,
    kill_strays,
    start_slot,
    starts_jobs_as,
)
from mendflow.pilot.files.work_folder import WorkFolder, remove_tree
from mendflow.pilot.slot.messages import FromSlot
from mendflow.pilot.slot.monitor import now_ms
from mendflow.pilot.slot.process_tags import find_slots, kill_unwatched, resume_slots
from mendflow.pilot.slot.processes import send
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.slot.spare import SpareSlot

log = logging.getLogger("mendflow.pilot")

GREETING_S = 10.0
ENDING_S = 8.0


class SlotPool:
    """`on_message` gets what slots say; `on_lost` gets a slot that died unexpectedly, with all its processes dead
    already."""

    def __init__(
        self,
        work_folder: WorkFolder,
        pilot: str,
        slots: int,
        *,
        settings: SlotSettings,
        spare: SpareSlot | None = None,
        on_message: Callable[[SlotLink, FromSlot], None],
        on_lost: Callable[[SlotLink], None],
        now_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._work_folder = work_folder
        self.now_ms = now_ms
        self._pilot = pilot
        self._slots = slots
        self._settings = settings
        self._spare = spare
        self._on_message, self._on_lost = on_message, on_lost
        self.links: dict[int, SlotLink] = {}
        self.ending = False
        self._guard_process = GuardProcess(work_folder, pilot)
        self._health_check = SlotHealthCheck()

    async def adopt(self) -> bool:
        """Connect to the slots that an earlier agent left, and read what they hold; False if there are none. Kills what
        is left of other slots."""
        resume_slots(find_slots(str(self._work_folder.folder)))
        numbers = {int(path.stem) for path in self._work_folder.slots.glob("*.sock") if path.stem.isdigit()}
        for number in sorted(numbers):
            link = SlotLink(number, self._on_message, self._handle_lost, self.now_ms)
            if await connect_slot(link, self._work_folder) and await self._wait_for_hello(link):
                self.links[number] = link
                link.retiring = link.is_stale = not starts_jobs_as(link.pid, self._settings)
            else:
                self._work_folder.socket_of(number).unlink(missing_ok=True)
        kill_unwatched(self._pilot, self._pids)
        return bool(self.links)

    async def _wait_for_hello(self, link: SlotLink) -> bool:
        try:
            return await asyncio.wait_for(asyncio.shield(link.hello_received), GREETING_S)
        except TimeoutError:
            return False

    async def fill(self) -> None:
        for number in range(self._slots):
            if number not in self.links:
                await self.start(number)
        if self._spare is not None:
            self._spare.drop()
        for link in list(self.links.values()):
            self.retire(link)
        self.maintain()

    def maintain(self) -> None:
        """Check that there is a guard, and that slots with work respond. Call it several times a second."""
        if self.ending:
            return
        self._guard_process.keep()
        for link in self._health_check.look(list(self.links.values())):
            log.warning("slot %d does not answer; it is killed and started again", link.number)
            send([link.pid], signal.SIGKILL)  # this closes the connection, which triggers the replacement

    async def start(self, number: int) -> None:
        """Start a slot unless it exists. If that fails now, the next `fill` tries again."""
        if self.ending or number >= self._slots or number in self.links:
            return
        link = self.links[number] = SlotLink(number, self._on_message, self._handle_lost, self.now_ms)
        try:
            await start_slot(link, self._work_folder, pilot=self._pilot, settings=self._settings, spare=self._spare)
        except OSError as error:
            del self.links[number]
            log.warning("slot %d cannot be started now: %s", number, error)

    @property
    def is_complete(self) -> bool:
        return all(number in self.links for number in range(self._slots))

    def retire(self, link: SlotLink) -> None:
        """Let a slot that is over the wanted number, or starts jobs as an earlier agent was told, finish its job and
        then end."""
        link.retiring = link.number >= self._slots or link.is_stale
        if link.retiring and not link.holds:
            link.stop()

    @property
    def open(self) -> list[SlotLink]:
        """Slots that accept work."""
        return [link for link in self.links.values() if link.alive and not link.retiring]

    @property
    def busy(self) -> int:
        return sum(1 for link in self.links.values() if link.holds)

    def count_slow(self, longer_than_ms: float) -> int:
        """How many slots have run their attempt for longer than this."""
        now = self.now_ms()
        return sum(1 for link in self.links.values() if link.busy_ms(now) > longer_than_ms)

    def _handle_lost(self, link: SlotLink) -> None:
        if self.ending or self.links.get(link.number) is not link:
            return
        del self.links[link.number]
        if link.process is not None:
            link.process.poll()
        if link.retiring and not link.holds:
            return
        kill_strays({*self._pids, self._guard_process.pid})
        if not kill_unwatched(self._pilot, self._pids):
            log.error("a process that slot %d left behind cannot be killed; kill it by hand", link.number)
        self._on_lost(link)

    @property
    def _pids(self) -> set[int]:
        """The pids of live slots, whichever agent started them."""
        return {link.pid for link in self.links.values() if link.pid}

    async def end(self) -> None:
        """End all slots and everything below them, and remove their sockets."""
        self.ending = True
        await asyncio.gather(*(end_slot(link, ENDING_S) for link in self.links.values()))
        self._guard_process.end()
        kill_own_commands()
        kill_strays(set())
        kill_unwatched(self._pilot, frozenset())
        for path in self._work_folder.slots.iterdir():
            remove_tree(str(path)) if path.is_dir() else path.unlink(missing_ok=True)
