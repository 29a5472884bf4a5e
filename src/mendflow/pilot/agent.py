"""The agent: what a person sees as the pilot. It pulls jobs from the server, feeds them to slots, and reports.

Everything it knows it can learn again: slots keep their attempts and results until the server has judged them, so an
agent that is killed and started anew finds them and goes on. Nothing here decides about a lease but the server's own
answers: the moment until which they hold is stored where all slots see it."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from mendflow.core.model.faults import Category, Fault, Stage
from mendflow.core.model.jobs import Outcome, Resources
from mendflow.core.model.sync import Assignment, Capacity, Control, SyncAnswer
from mendflow.core.scheduling import batch
from mendflow.pilot.attempts import Attempts, Held
from mendflow.pilot.background import Background
from mendflow.pilot.bringing import Bringing
from mendflow.pilot.crew import Crew
from mendflow.pilot.devices import Devices
from mendflow.pilot.handing import Handing
from mendflow.pilot.home import Home
from mendflow.pilot.keeping import Keeping
from mendflow.pilot.lease import LeaseClock, boot_ms
from mendflow.pilot.slots import SlotLink
from mendflow.pilot.staging import Staging
from mendflow.pilot.verdicts import End, stopped
from mendflow.pilot.wire import AttemptKey, Done, FromSlot, Pulse

log = logging.getLogger("mendflow.pilot")

SOON_MS = 3.0
REPLACE_AFTER_S = 0.1
LEASE_AHEAD_MS_MAX = 24 * 3600 * 1000
_ENCODER = msgspec.msgpack.Encoder()


class Agent:
    """`changed` is set whenever there may be something to tell the server."""

    def __init__(
        self,
        home: Home,
        pilot: str,
        capacity: Capacity,
        staging: Staging,
        *,
        keep: bool,
        crew: Callable[..., Crew] = Crew,
        boot_ms: Callable[[], int] = boot_ms,
    ) -> None:
        """`crew` has the slots: processes of this machine, or of one that is only imagined; `boot_ms` is its clock."""
        self._boot_ms = boot_ms
        self.attempts = Attempts(capacity)
        self.lease = LeaseClock(home.lease)
        self.mean_ms: float | None = None
        self.changed = asyncio.Event()
        self.leaving = False
        self.paused = False  # there is no room for more jobs
        self._sated = False  # every slot has a job that is long
        self.state_news = False  # an attempt was stopped or went on since the server was last told
        self.live_news = False  # a running job has reported something, or its memory has grown
        self.idle_since = self._boot_ms()
        self._home = home
        self._capacity = capacity
        self._background = Background()
        self._bringing = Bringing(home, staging, self._background, self._brought)
        self._staging = staging
        self._keeping = Keeping(
            home,
            self.attempts,
            staging,
            self._background,
            keep=keep,
            told=self.changed.set,
            holds=lambda: not self.lease.over(self._boot_ms()),
        )
        self._crew = crew(home, pilot, capacity.slots, keep=keep, hear=self._hear_slot, lose=self._lose_slot)
        self._handing = Handing(self.attempts, self._crew, self._bringing, Devices(capacity.gpus))
        self._quiet = asyncio.Event()
        self._exchange_ms = 0.0

    # coming and going

    async def start(self) -> None:
        """Find what an earlier agent has left, then fill up with new slots."""
        adopted = await self._crew.adopt()
        if not adopted or self.lease.stop_at > self._boot_ms() + LEASE_AHEAD_MS_MAX:
            self.lease.clear()
        for done in self._home.left_results():
            self._hear_done(None, done)
        self._keeping.sweep()
        if not self.paused:
            await self._crew.fill()

    async def look_after(self) -> None:
        """To be called several times a second: somebody might have killed the guard or stopped a slot, and what was
        fetched ahead may turn out to have been too much."""
        self._crew.look_after()
        self._give_back()
        if not self._crew.whole and not self.paused and not self.leaving:
            await self._crew.fill()

    def _give_back(self) -> None:
        """Let others have what no slot here will come to soon. What the server took for begun stays: it would count as
        lost."""
        slow = self._crew.slow(batch.MISTAKEN * batch.window_ms(self._exchange_ms))
        if self._sated != (slow >= self._capacity.slots):
            self._sated = not self._sated
            self.changed.set()
        unbegun = [held for held in self.attempts.ready if held.may_go_back]
        many = batch.too_many(
            slots=self._capacity.slots,
            slow_slots=slow,
            waiting=len(unbegun),
            mean_ms=self.mean_ms,
            exchange_ms=self._exchange_ms,
        )
        for held in unbegun[len(unbegun) - many :]:
            self._drop(held)
        if many:
            self.state_news = True
            self.changed.set()

    async def finish(self, grace_ms: int, hurry: asyncio.Event) -> None:
        """Give back what has not started, let what runs end within the grace, then end all slots."""
        self.leaving = True
        self._staging.leave()
        for link in self._crew.links.values():
            link.recall()
        for held in [held for held in self.attempts.all.values() if held.done is None and held.link is None]:
            self._drop(held)
        self._look_whether_quiet()
        waits = [asyncio.ensure_future(self._quiet.wait()), asyncio.ensure_future(hurry.wait())]
        await asyncio.wait(waits, timeout=grace_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await self._crew.end()
        self._staging.go()
        for held in [held for held in self.attempts.all.values() if held.done is None]:
            self._drop(held)

    def _look_whether_quiet(self) -> None:
        if self.leaving and not self._crew.busy:
            self._quiet.set()

    def keep_unjudged(self) -> None:
        self._keeping.store_unjudged()

    # what to ask for

    def appetite(self, exchange_ms: float) -> int:
        self._exchange_ms = exchange_ms
        if self.leaving or self.paused:
            return 0
        slots, busy = self._capacity.slots, self._crew.busy
        return batch.want(
            slots=slots,
            free_slots=max(0, slots - busy),
            held=max(0, self.attempts.alive() - busy),
            mean_ms=self.mean_ms,
            exchange_ms=exchange_ms,
            slow_slots=self._crew.slow(batch.window_ms(exchange_ms)),
        )

    @property
    def wants_no_more(self) -> bool:
        """Whether what was asked for is no longer wanted, and others should have it."""
        return self._sated or self.paused

    @property
    def well_supplied(self) -> bool:
        """Whether there is more work at hand than the slots are running, and than they have just finished: then
        reports may wait for more of them without a slot ever waiting for work."""
        alive = self.attempts.alive()
        return alive > self._capacity.slots and alive > len(self.attempts.reports)

    @property
    def short_work(self) -> bool:
        """Whether reports may be expected within a few milliseconds."""
        return self.mean_ms is not None and self.mean_ms < SOON_MS and self._crew.busy > 0

    # the server's answer

    def obey_late(self, answer: SyncAnswer) -> None:
        """An answer that a newer one has overtaken: its jobs are not ours, but what it says is over is over."""
        self._obey_verdicts(answer)
        for order in answer.orders:
            if order.control is Control.CANCEL:
                self._control((order.job, order.fence), order.control.value)

    def obey(self, answer: SyncAnswer) -> None:
        self._obey_verdicts(answer)
        for assignment in answer.jobs:
            self._take(assignment)
        for order in answer.orders:
            self._control((order.job, order.fence), order.control.value)
        self._dispatch()

    def _obey_verdicts(self, answer: SyncAnswer) -> None:
        for ref in (*answer.accepted, *answer.refused):
            self._judged((ref.job, ref.fence))
        for ref in answer.lost:
            self._lose((ref.job, ref.fence))

    def _judged(self, key: AttemptKey) -> None:
        held = self.attempts.forget(key)
        if held is None or held.done is None:
            return
        for link in self._crew.links.values():
            if link.number == held.slot or held.slot < 0:
                link.ack(held.key)
        self._keeping.put_away(held)
        if not self.attempts.all:
            self.idle_since = self._boot_ms()

    def _lose(self, key: AttemptKey) -> None:
        """The attempt is no longer ours: kill it at once, and tell nobody how it ended."""
        held = self.attempts.all.get(key)
        if held is None:
            return
        if held.done is not None:
            self._judged(key)
            return
        held.forgotten = True
        if held.link is not None:
            held.link.control(key, "kill")
        elif held.state != "staging":
            self._drop(held)

    def _drop(self, held: Held) -> None:
        """Forget an attempt that never started, or whose end nobody wants to know."""
        waiting = self.attempts.over(held)
        self.attempts.forget(held.key)
        if held in self.attempts.ready:
            self.attempts.ready.remove(held)
        self._handing.free_devices(held)
        self._keeping.drop(held)
        if waiting is not None:
            self._prepare(waiting)

    def _take(self, assignment: Assignment) -> None:
        key = (assignment.job, assignment.fence)
        if key in self.attempts.all or self.leaving:
            return
        spec = assignment.spec
        held = Held(assignment.job, assignment.fence, spec.resources, spec, number=assignment.number)
        older = self.attempts.add(held)
        if older is not None:
            self._lose(older.key)
        if self.attempts.free_to_start(held):
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
            self.state_news = True
        else:
            text = "it was cancelled"
            self._fail(held, Fault(name="cancelled", category=Category.CANCELLED, message=text, stage=Stage.START))

    # towards a slot

    def _prepare(self, held: Held) -> None:
        if self._bringing.prepare(held):
            self.attempts.line_up(held)

    def _brought(self, held: Held, fault: Fault | None) -> None:
        """An attempt has been staged, or could not be; and it may not be wanted any more."""
        if held.forgotten or self.leaving:
            self._drop(held)
        elif fault is not None:
            self._fail(held, fault)
        elif held.cancelled:
            self._control(held.key, "cancel")
        else:
            self.attempts.line_up(held)
            self._dispatch()

    def _dispatch(self) -> None:
        if self.attempts.ready and not self.leaving and not self.lease.over(self._boot_ms()):
            self.state_news |= self._handing.hand_out(self.mean_ms)

    # from a slot

    def _hear_slot(self, link: SlotLink, message: FromSlot) -> None:
        for pulse in message.pulses:
            self._hear_pulse(link, pulse)
        if message.devices:
            self._handing.find_devices(message)
        for key in message.returned:
            self._back(link, (key[0], key[1]))
        for done in message.done:
            self._hear_done(link, done)
        if message.done or message.returned:
            self._dispatch()
            self._look_whether_quiet()
            self._crew.retire(link)
        self.changed.set()

    def _hear_pulse(self, link: SlotLink, pulse: Pulse) -> None:
        held = self.attempts.all.get((pulse.job, pulse.fence))
        if held is None:
            held = Held(pulse.job, pulse.fence, Resources(), link=link, slot=link.number)
            self.attempts.add(held)
            link.holds.add(held.key)
        self.state_news |= held.state != pulse.state
        self.live_news |= held.hear(pulse)

    def _back(self, link: SlotLink, key: AttemptKey) -> None:
        link.holds.discard(key)
        held = self.attempts.all.get(key)
        if held is None or held.done is not None:
            return
        held.link, held.state = None, "suspended" if held.suspended else "held"
        self._handing.free_devices(held)
        self.state_news |= held.suspended
        if held.forgotten or self.leaving or held.work is None:
            self._drop(held)
        elif held.cancelled:
            self._control(key, "cancel")
        else:
            self.attempts.line_up(held)

    def _hear_done(self, link: SlotLink | None, done: Done) -> None:
        held = self.attempts.all.get(done.key)
        if held is None:
            held = Held(done.job, done.fence, Resources())
            self.attempts.add(held)
        if held.done is not None:
            return
        if link is not None:
            held.slot = link.number
            link.holds.discard(done.key)
        held.done = done
        self._handing.free_devices(held)
        self.mean_ms = batch.mean_after(self.mean_ms, done.ran_us / 1000)
        waiting = self.attempts.over(held)
        if waiting is not None:
            self._prepare(waiting)
        if held.forgotten:
            self._judged(held.key)
        else:
            self._keeping.take(held)

    def _fail(self, held: Held, fault: Fault) -> None:
        """The attempt ends here, before or outside a slot."""
        if held in self.attempts.ready:
            self.attempts.ready.remove(held)
        outcome = msgspec.Raw(_ENCODER.encode(Outcome(fault=fault)))
        self._hear_done(None, Done(held.job, held.fence, outcome, 1, folder=True))

    def _lose_slot(self, link: SlotLink) -> None:
        """A slot process has died, which only happens when somebody kills it. What it had finished may be on disk."""
        for done in self._home.left_results():
            if done.key in link.holds:
                self._hear_done(None, done)
        if self.lease.over(self._boot_ms()):
            fault = stopped(End.LEASE, wall_ms=0, memory_bytes=0, peak_bytes=0)
        else:
            by = "when the pilot was told to leave" if self.leaving else "and the job with it"
            text = f"the process that watched the job was killed, {by}"
            fault = Fault(name="slotDied", category=Category.RESOURCE, message=text, stage=Stage.EXECUTION)
        for key in list(link.holds):
            held = self.attempts.all.get(key)
            if held is not None and held.done is None:
                self._fail(held, fault)
        log.warning("slot %d was killed; a new one is started", link.number)
        self._background.go(self._replace(link.number))

    async def _replace(self, number: int) -> None:
        await asyncio.sleep(REPLACE_AFTER_S)
        await self._crew.start(number)
        self._dispatch()
