"""The agent: the process that a person sees as the pilot. It pulls jobs from the server, hands them to slots, and
reports.

An agent can be killed and restarted at any time: slots keep their attempts and results until the server has
acknowledged them, and a new agent finds them there. Only the server's answers decide about the lease; the moment at
which it ends is in shared memory, where all slots see it."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Outcome, Resources
from mendflow.core.model.sync import Assignment, AttemptControl, Capacity, SyncAnswer
from mendflow.core.scheduling import prefetch
from mendflow.pilot.agent.attempts import Attempts, HeldAttempt
from mendflow.pilot.agent.background import DetachedTasks
from mendflow.pilot.agent.devices import Devices
from mendflow.pilot.agent.dispatch import AttemptDispatcher
from mendflow.pilot.agent.live_logs import LiveLogs
from mendflow.pilot.agent.preparation import AttemptPreparer
from mendflow.pilot.agent.result_delivery import ResultDelivery
from mendflow.pilot.agent.slot_link import SlotLink
from mendflow.pilot.agent.slot_pool import SlotPool
from mendflow.pilot.bounds import USUAL_BOUNDS, KeepLimits
from mendflow.pilot.containers.pilot_containers import NO_CONTAINERS, PilotContainers
from mendflow.pilot.files.kept_folders import KeptFolders
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.faults import StopReason, stop_fault
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.logs import log_end
from mendflow.pilot.slot.messages import AttemptKey, FinishedAttempt, FromSlot, Heartbeat
from mendflow.pilot.slot.settings import SLOT_SETTINGS, SlotSettings

log = logging.getLogger("mendflow.pilot")

SOON_MS = 3.0
REPLACE_AFTER_S = 0.1
LEASE_AHEAD_MS_MAX = 24 * 3600 * 1000
_ENCODER = msgspec.msgpack.Encoder()


class Agent:
    """`changed` is set whenever there may be something to report to the server."""

    def __init__(
        self,
        work_folder: WorkFolder,
        pilot: str,
        capacity: Capacity,
        staging: FileStager,
        *,
        settings: SlotSettings = SLOT_SETTINGS,
        keep_limits: KeepLimits = USUAL_BOUNDS.keep_failed,
        containers: PilotContainers = NO_CONTAINERS,
        slot_pool: Callable[..., SlotPool] = SlotPool,
        boot_ms: Callable[[], int] = boot_ms,
    ) -> None:
        """`slot_pool` has the slots: processes of this machine, or of one that is only imagined; `boot_ms` is its
        clock."""
        self._boot_ms = boot_ms
        self.attempts = Attempts(capacity)
        self.lease = LeaseClock(work_folder.lease)
        self.mean_ms: float | None = None
        self.changed = asyncio.Event()
        self.leaving = False
        self._paused_by = ""
        self._all_slots_slow = False  # every slot runs a long job
        self.has_new_state = False  # an attempt was suspended or resumed since the last report
        self.has_live_news = False  # a running job has reported a value, or its memory has grown
        self.idle_since = self._boot_ms()
        self._work_folder = work_folder
        self._capacity = capacity
        self._background = DetachedTasks()
        self._containers = containers
        self._preparer = AttemptPreparer(
            work_folder, staging, containers, self._background, self._on_prepared, settings
        )
        self._staging = staging
        self._delivery = ResultDelivery(
            work_folder,
            self.attempts,
            staging,
            self._background,
            keep_all=settings.keep_all,
            kept_folders=KeptFolders(work_folder, keep_limits) if settings.keep_failed else None,
            on_result=self.changed.set,
            holds=lambda: not self.lease.is_over(self._boot_ms()),
        )
        self._slot_pool = slot_pool(
            work_folder,
            pilot,
            capacity.slots,
            settings=settings,
            on_message=self._on_slot_message,
            on_lost=self._on_slot_lost,
        )
        self.live_logs = LiveLogs(work_folder, self.attempts, self.changed.set)
        self._dispatcher = AttemptDispatcher(self.attempts, self._slot_pool, self._preparer, Devices(capacity.gpus))
        self._idle_event = asyncio.Event()
        self._exchange_ms = 0.0

    # start and stop

    async def start(self) -> None:
        """Adopt the slots that an earlier agent left, then start the missing ones."""
        adopted = await self._slot_pool.adopt()
        self._background.start(self._containers.remove_leftovers())
        if not adopted or self.lease.stop_at > self._boot_ms() + LEASE_AHEAD_MS_MAX:
            self.lease.clear()
        for done in self._work_folder.unjudged_results():
            self._on_finished(None, done)
        self._delivery.sweep()
        if not self.is_paused:
            await self._slot_pool.fill()

    async def maintain(self) -> None:
        """Restart the guard or slots that were killed or stopped, remove containers that nobody watches, and return
        prefetched jobs that are too many. Call it several times a second."""
        self._slot_pool.maintain()
        self._delivery.maintain(short=self.is_paused)
        if self._containers.must_look(self._boot_ms()):
            self._background.start(self._containers.remove_unwatched())
        self._give_back()
        if not self._slot_pool.is_complete and not self.is_paused and not self.leaving:
            await self._slot_pool.fill()

    def _give_back(self) -> None:
        """Return attempts that no slot here will start soon. An attempt that the server counts as started stays:
        returned, it would count as lost."""
        slow = self._slot_pool.count_slow(prefetch.OUTLIER_FACTOR * prefetch.window_ms(self._exchange_ms))
        if self._all_slots_slow != (slow >= self._capacity.slots):
            self._all_slots_slow = not self._all_slots_slow
            self.changed.set()
        unbegun = [held for held in self.attempts.ready if held.can_be_returned]
        many = prefetch.jobs_to_return(
            slots=self._capacity.slots,
            slow_slots=slow,
            waiting=len(unbegun),
            mean_ms=self.mean_ms,
            exchange_ms=self._exchange_ms,
        )
        for held in unbegun[len(unbegun) - many :]:
            self._drop(held)
        if many:
            self.has_new_state = True
            self.changed.set()

    async def finish(self, grace_ms: int, hurry: asyncio.Event) -> None:
        """Return attempts that have not started, let running ones end within the grace period, then end all slots."""
        self.leaving = True
        self._staging.stop_fetching()
        self._containers.stop()
        for link in self._slot_pool.links.values():
            link.recall()
        for held in [held for held in self.attempts.all.values() if held.done is None and held.link is None]:
            self._drop(held)
        self._check_idle()
        waits = [asyncio.ensure_future(self._idle_event.wait()), asyncio.ensure_future(hurry.wait())]
        await asyncio.wait(waits, timeout=grace_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await self._slot_pool.end()
        await self._containers.remove_leftovers()
        self._staging.stop_publishing()
        for held in [held for held in self.attempts.all.values() if held.done is None]:
            self._drop(held)

    def _check_idle(self) -> None:
        if self.leaving and not self._slot_pool.busy:
            self._idle_event.set()

    async def sweep_kept_folders(self) -> None:
        await self._delivery.end()

    def store_unjudged_results(self) -> None:
        self._delivery.store_unjudged()

    # what to request

    def pause(self, why: str) -> None:
        """Take no more jobs for this reason; for none, take jobs again."""
        self._paused_by = why

    @property
    def paused_by(self) -> str:
        return self._paused_by

    @property
    def is_paused(self) -> bool:
        return bool(self._paused_by)

    def jobs_wanted(self, exchange_ms: float) -> int:
        self._exchange_ms = exchange_ms
        if self.leaving or self.is_paused:
            return 0
        slots, busy = self._capacity.slots, self._slot_pool.busy
        wanted = prefetch.jobs_wanted(
            slots=slots,
            free_slots=max(0, slots - busy),
            held=max(0, self.attempts.alive() - busy),
            mean_ms=self.mean_ms,
            exchange_ms=exchange_ms,
            slow_slots=self._slot_pool.count_slow(prefetch.window_ms(exchange_ms)),
        )
        return min(wanted, self.attempts.room)

    @property
    def wants_no_more(self) -> bool:
        """Whether jobs that were requested are no longer wanted, so that other pilots should get them."""
        return self._all_slots_slow or self.is_paused

    @property
    def is_well_supplied(self) -> bool:
        """Whether more work is queued here than the slots run and have just finished. If so, reports may wait to be
        batched without any slot running idle."""
        alive = self.attempts.alive()
        return alive > self._capacity.slots and alive > len(self.attempts.reports)

    @property
    def expects_reports_soon(self) -> bool:
        """Whether a report is likely within a few milliseconds."""
        return self.mean_ms is not None and self.mean_ms < SOON_MS and self._slot_pool.busy > 0

    # the server's answer

    def apply_late_answer(self, answer: SyncAnswer) -> None:
        """Apply an answer that a newer one has overtaken: ignore its jobs, but drop the attempts that it ends."""
        self._apply_verdicts(answer)
        for order in answer.orders:
            if order.control is AttemptControl.CANCEL:
                self._control((order.job, order.fence), order.control.value)
        self._abandon_lost(answer)

    def apply_answer(self, answer: SyncAnswer) -> None:
        self._apply_verdicts(answer)
        for wanted in answer.logs:
            self._background.start(self.live_logs.read(wanted))
        for assignment in answer.jobs:
            self._take(assignment)
        for order in answer.orders:
            self._control((order.job, order.fence), order.control.value)
        self._abandon_lost(answer)
        self._dispatch()

    def _apply_verdicts(self, answer: SyncAnswer) -> None:
        for ref in (*answer.accepted, *answer.refused):
            self._on_verdict((ref.job, ref.fence))

    def _abandon_lost(self, answer: SyncAnswer) -> None:
        """After the orders: one that was cancelled is not ours any more either, and has its time to end."""
        for ref in answer.lost:
            self._abandon((ref.job, ref.fence))

    def _on_verdict(self, key: AttemptKey) -> None:
        held = self.attempts.forget(key)
        if held is None or held.done is None:
            return
        for link in self._slot_pool.links.values():
            if link.number == held.slot or held.slot < 0:
                link.ack(held.key)
        self._delivery.clean_up(held)
        if not self.attempts.all:
            self.idle_since = self._boot_ms()

    def _abandon(self, key: AttemptKey) -> None:
        """Kill an attempt that is no longer ours, unless it ends already, and do not report how it ended."""
        held = self.attempts.all.get(key)
        if held is None:
            return
        if held.done is not None:
            self._on_verdict(key)
            return
        held.is_abandoned = True
        if held.link is not None:
            held.link.control(key, "kill")
        elif held.state != "staging":
            self._drop(held)

    def _drop(self, held: HeldAttempt) -> None:
        """Forget an attempt that never started, or whose result is not wanted."""
        waiting = self.attempts.mark_ended(held)
        self.attempts.forget(held.key)
        if held in self.attempts.ready:
            self.attempts.ready.remove(held)
        self._dispatcher.free_devices(held)
        self._delivery.drop(held)
        if waiting is not None:
            self._prepare(waiting)

    def _take(self, assignment: Assignment) -> None:
        key = (assignment.job, assignment.fence)
        if key in self.attempts.all or self.leaving:
            return
        spec = assignment.spec
        held = HeldAttempt(
            assignment.job,
            assignment.fence,
            spec.resources,
            spec,
            number=assignment.number,
            secrets=assignment.secrets,
        )
        older = self.attempts.add(held)
        if older is not None:
            self._abandon(older.key)
        if self.attempts.can_start(held):
            self._prepare(held)

    def _control(self, key: AttemptKey, control: str) -> None:
        held = self.attempts.all.get(key)
        if held is None or held.done is not None:
            return
        held.suspended = control == "suspend" or (held.suspended and control != "resume")
        held.cancelled |= control == "cancel"
        if held.link is not None:
            held.link.control(key, control)
        elif held.state == "staging":
            return
        elif not held.cancelled:
            held.state = "suspended" if held.suspended else "held"
            self.has_new_state = True
        else:
            text = "it was cancelled"
            self._fail(
                held, Fault(name="cancelled", category=Category.CANCELLED, message=text, stage=AttemptStage.START)
            )

    # agent to slot

    def _prepare(self, held: HeldAttempt) -> None:
        if self._preparer.prepare(held):
            self.attempts.enqueue(held)

    def _on_prepared(self, held: HeldAttempt, fault: Fault | None) -> None:
        """Staging of an attempt has succeeded or failed; the attempt may no longer be wanted."""
        if held.is_abandoned or self.leaving:
            self._drop(held)
        elif fault is not None:
            self._fail(held, fault)
        elif held.cancelled:
            self._control(held.key, "cancel")
        else:
            self.attempts.enqueue(held)
            self._dispatch()

    def _dispatch(self) -> None:
        if self.attempts.ready and not self.leaving and not self.lease.is_over(self._boot_ms()):
            self.has_new_state |= self._dispatcher.dispatch(self.mean_ms)

    # slot to agent

    def _on_slot_message(self, link: SlotLink, message: FromSlot) -> None:
        for heartbeat in message.heartbeats:
            self._on_heartbeat(link, heartbeat)
        if message.devices:
            self._dispatcher.claim_devices(message)
        for key in message.returned:
            self._on_returned(link, (key[0], key[1]))
        for done in message.done:
            self._on_finished(link, done)
        if message.done or message.returned:
            self._dispatch()
            self._check_idle()
            self._slot_pool.retire(link)
        self.changed.set()

    def _on_heartbeat(self, link: SlotLink, heartbeat: Heartbeat) -> None:
        held = self.attempts.all.get((heartbeat.job, heartbeat.fence))
        if held is None:
            held = HeldAttempt(heartbeat.job, heartbeat.fence, Resources(), link=link, slot=link.number)
            self.attempts.add(held)
            link.holds.add(held.key)
        self.has_new_state |= held.state != heartbeat.state
        self.has_live_news |= held.on_message(heartbeat)

    def _on_returned(self, link: SlotLink, key: AttemptKey) -> None:
        link.holds.discard(key)
        held = self.attempts.all.get(key)
        if held is None or held.done is not None:
            return
        held.link, held.state = None, "suspended" if held.suspended else "held"
        self._dispatcher.free_devices(held)
        self.has_new_state |= held.suspended
        if held.is_abandoned or self.leaving or held.work is None:
            self._drop(held)
        elif held.cancelled:
            self._control(key, "cancel")
        else:
            self.attempts.enqueue(held)

    def _on_finished(self, link: SlotLink | None, done: FinishedAttempt) -> None:
        held = self.attempts.all.get(done.key)
        if held is None:
            held = HeldAttempt(done.job, done.fence, Resources())
            self.attempts.add(held)
        if held.done is not None:
            return
        if link is not None:
            held.slot = link.number
            link.holds.discard(done.key)
        if held.container is not None:
            done = msgspec.structs.replace(done, outcome=self._containers.judged(done.outcome))
        held.done = done
        self._dispatcher.free_devices(held)
        self.mean_ms = prefetch.updated_mean_ms(self.mean_ms, done.ran_us / 1000)
        waiting = self.attempts.mark_ended(held)
        if waiting is not None:
            self._prepare(waiting)
        if held.is_abandoned:
            self._on_verdict(held.key)
        else:
            self._delivery.take(held)

    def _fail(self, held: HeldAttempt, fault: Fault) -> None:
        """End the attempt with a fault, before it reached a slot or without one."""
        if held in self.attempts.ready:
            self.attempts.ready.remove(held)
        tail, is_long = log_end(f"{self._work_folder.attempt(*held.key)}.log")
        outcome = Outcome(fault=msgspec.structs.replace(fault, log_tail=tail), log_tail=tail)
        encoded = msgspec.Raw(_ENCODER.encode(outcome))
        self._on_finished(None, FinishedAttempt(held.job, held.fence, encoded, 1, folder=True, log=is_long))

    def _on_slot_lost(self, link: SlotLink) -> None:
        """Handle the death of a slot process, which happens only when it is killed. Its finished results may be on
        disk."""
        for done in self._work_folder.unjudged_results():
            if done.key in link.holds:
                self._on_finished(None, done)
        if self.lease.is_over(self._boot_ms()):
            fault = stop_fault(StopReason.LEASE, wall_ms=0, memory_bytes=0, peak_bytes=0)
        else:
            by = "when the pilot was told to leave" if self.leaving else "and the job with it"
            text = f"the process that watched the job was killed, {by}"
            fault = Fault(name="slotDied", category=Category.RESOURCE, message=text, stage=AttemptStage.EXECUTION)
        for key in list(link.holds):
            held = self.attempts.all.get(key)
            if held is not None and held.done is None:
                self._fail(held, fault)
        log.warning("slot %d was killed; a new one is started", link.number)
        self._background.start(self._containers.remove_leftovers())
        self._background.start(self._replace(link.number))

    async def _replace(self, number: int) -> None:
        await asyncio.sleep(REPLACE_AFTER_S)
        await self._slot_pool.start(number)
        self._dispatch()
