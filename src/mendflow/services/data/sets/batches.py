"""Sees to it that what follows from data sets happens: batches become cases, sets are closed after those before them.

A batch's case has a key that says which batch it is, so it does not matter how many servers start it, or how often. Who
made a batch starts it at once; one server, chosen by the name of the set among those that live, looks after what is
left lying. All that this needs is in the journals of sets and in the documents of cases: a crash loses nothing."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, Protocol

import msgspec

from mendflow.core.data.gathering import Batch, DataSet, closing, inputs_of, key_of, may_close, next_due, set_of_key
from mendflow.core.model.data_sets import BatchStatus, Ended, SetFact, Started
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.problems import Mistake, NotNow, StoreUnavailable
from mendflow.core.model.values import Value
from mendflow.services.base.cluster import CASE_KIND, LIVE_STATUSES
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.data.sets.arrivals import Arrivals
from mendflow.services.data.sets.responsibility import Turns
from mendflow.services.data.sets.store import SetBook
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.data-sets")

LOOK_MS: Final = 1_000
LIST_MS: Final = 5_000
"""So often is looked for sets that others made, for cases that ended elsewhere, and into the catalogue."""
GRACE_MS: Final = 5_000
"""So long is a batch left to whoever made it."""
AT_A_TIME: Final = 16
CHUNK: Final = 500
TRY_AGAIN_MS: Final = 15_000


class Starting(Protocol):
    """Starts cases; the same key is the same case."""

    async def start(
        self,
        name: str,
        inputs: dict[str, Value],
        *,
        who: str,
        key: str = "",
        notify: str = "",
        cache_from: CaseId | None = None,
    ) -> CaseDocument: ...


class _Case(msgspec.Struct):
    """What is read of a case to know whether it has ended."""

    status: str


_decode_case = msgspec.json.Decoder(_Case).decode


class Tending:
    """`problems` are why batches could not become cases, by the keys of their cases."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        membership: OwnMembership,
        book: SetBook,
        arrivals: Arrivals,
        starting: Starting,
        notices: Notices,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._membership = membership
        self._turns = Turns(membership)
        self._book = book
        self._arrivals = arrivals
        self._starting = starting
        self._notices = notices
        self.problems: dict[str, str] = {}
        self._not_before: dict[str, Instant] = {}
        self._names: set[str] = set()  # of the sets that go on
        self._wanted: dict[str, None] = {}  # sets in which something happened here
        self._drained: set[str] = set()
        self._listed_at: Instant = 0
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="data sets")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self, name: str) -> None:
        """Something happened to this set."""
        self._wanted[name] = None
        self._woken.set()

    def case_ended(self, document: CaseDocument) -> None:
        """Told before the end is on disk."""
        if document.key and (name := set_of_key(document.key)):
            self.wake(name)

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("data sets could not be processed: %s", error.message)
            except Exception:  # what is wrong with one look must not stop all that follow
                log.exception("data sets could not be processed")
            await self._pause()

    async def _pause(self) -> None:
        waiting = asyncio.create_task(self._woken.wait())
        sleeping = asyncio.create_task(self._clock.sleep(LOOK_MS))
        try:
            await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()
            await asyncio.gather(waiting, sleeping, return_exceptions=True)
            self._woken.clear()

    async def look(self) -> None:
        """Tend the sets in which something happened here, and now and then those that this server looks after."""
        if not self._membership.may_promise():
            return  # others may have its cases by now, and will look after the sets too
        wanted, self._wanted = self._wanted, {}
        thorough = self._clock.now() - self._listed_at >= LIST_MS
        if thorough:
            self._names |= set(await self._book.going_on())
            self._listed_at = self._clock.now()
        mine = [each for each in sorted(self._names - wanted.keys()) if self._turns.mine(f"data set {each}")]
        for name in [*wanted, *(each for each in mine if thorough or self._is_due(each))]:
            try:
                await self._tend(name, here=name in wanted, thorough=thorough)
            except StoreUnavailable:
                self._wanted |= wanted
                raise
            except Exception:  # whatever is wrong with one set, the others go on
                log.exception("data set %s could not be processed", name)

    def _is_due(self, name: str) -> bool:
        """Whether a batch is to be made because time has passed."""
        state = self._book.at_hand(name)
        return state is not None and 0 < next_due(state) <= self._clock.now()

    async def _tend(self, name: str, *, here: bool, thorough: bool) -> None:
        if thorough:
            await self._arrivals.sweep(name)
        self._names.add(name)
        known = self._book.at_hand(name)
        before = _sum(known) if known is not None else ()
        state = await self._book.change(name, _nothing)
        await self._start(state, self._startable(state, here=here or before != _sum(state)))
        if here or thorough:
            await self._hear_ends(state)
        await self._close_after(state)
        if before != _sum(state):
            for other in await self._after(name):
                self.wake(other)
        if state.drained:
            await self._book.over(name)
            self._names.discard(name)

    async def _after(self, name: str) -> list[str]:
        """The sets that come after this one."""
        known = [(each, self._book.at_hand(each) or await self._book.find(each)) for each in self._names - {name}]
        return [each for each, state in known if state is not None and name in state.after]

    # Batches become cases

    def _startable(self, state: DataSet, *, here: bool) -> list[Batch]:
        now, grace_ms = self._clock.now(), GRACE_MS if self._membership.shared else 0
        return [
            batch
            for batch in state.batches()
            if batch.status == "waiting"
            and (here or now - batch.made_at >= grace_ms)
            and self._not_before.get(key_of(state, batch), 0) <= now
        ]

    async def _start(self, state: DataSet, batches: Sequence[Batch]) -> None:
        for start in range(0, len(batches), AT_A_TIME):
            chunk = batches[start : start + AT_A_TIME]
            cases = await asyncio.gather(*(self._started(state, batch) for batch in chunk))
            begun = [
                Started(gathering=batch.rule.name, number=batch.number, attempt=batch.attempt, case=case)
                for batch, case in zip(chunk, cases, strict=True)
                if case is not None
            ]
            await self._book.change(state.name, partial(_still_waiting, begun))

    async def _started(self, state: DataSet, batch: Batch) -> CaseId | None:
        key = key_of(state, batch)
        try:
            inputs = inputs_of(state, batch)
            cache_from = batch.earlier or None
            case = await self._starting.start(batch.rule.flow, inputs, who=state.owner, key=key, cache_from=cache_from)
        except (StoreUnavailable, NotNow):
            self._wanted[state.name] = None  # with the next look
            return None
        except Mistake as mistake:
            self._not_started(state, batch, key, mistake.message)
            return None
        self.problems.pop(key, None)
        return case.id

    def _not_started(self, state: DataSet, batch: Batch, key: str, why: str) -> None:
        self._not_before[key] = self._clock.now() + TRY_AGAIN_MS
        if self.problems.get(key) != why:
            self.problems[key] = why
            name = f"batch {batch.rule.name}/{batch.number} of data set {state.name}"
            self._notices.post(f"{name} does not become a case yet: {why}")

    # Cases end

    async def _hear_ends(self, state: DataSet) -> None:
        running = [batch for batch in state.batches() if batch.status == "running"]
        if not running:
            return
        await self._ledger.settled()
        for start in range(0, len(running), CHUNK):
            chunk = running[start : start + CHUNK]
            found = await self._store.get_many(CASE_KIND, [batch.case for batch in chunk])
            statuses = {each.id: _decode_case(each.body).status for each in found}
            ended = [
                Ended(gathering=batch.rule.name, number=batch.number, attempt=batch.attempt, status=status)
                for batch in chunk
                if (status := _ended(statuses.get(batch.case, ""))) is not None
            ]
            await self._book.change(state.name, partial(_still_running, ended))

    async def _close_after(self, state: DataSet) -> None:
        """Close a set that comes after others, when nothing can come from these any more."""
        if state.closed or not state.after:
            return
        before = {each: await self._before(each) for each in state.after}
        if may_close(state, before.get):
            await self._arrivals.sweep(state.name, whole=True)
            by = f"after {', '.join(state.after)}"
            await self._book.change(state.name, lambda now: closing(now, by=by))
            await self._start(state, self._startable(state, here=True))

    async def _before(self, name: str) -> DataSet | None:
        """A set as another that comes after it sees it. One in which nothing can change is not read again."""
        if name in self._drained:
            return DataSet(name=name, closed_at=1)
        found = await self._book.find(name)
        if found is not None and found.drained:
            self._drained.add(name)
        return found


def _nothing(_: DataSet) -> list[SetFact]:
    return []


def _still_waiting(begun: Iterable[Started], state: DataSet) -> list[SetFact]:
    """Which of these nobody else has told."""
    return [fact for fact in begun if _is(state, fact, "waiting")]


def _still_running(ended: Iterable[Ended], state: DataSet) -> list[SetFact]:
    return [fact for fact in ended if _is(state, fact, "running")]


def _is(state: DataSet, fact: Started | Ended, status: BatchStatus) -> bool:
    batch = state.batch(fact.gathering, fact.number)
    return batch.attempt == fact.attempt and batch.status == status


def _sum(state: DataSet) -> tuple[object, ...]:
    """What others may wait for, so that a change shows."""
    return (len(state.files), state.closed, *(batch.status for batch in state.batches()))


def _ended(status: str) -> BatchStatus | None:
    """How the batch ended whose case has this status, if it has ended."""
    if not status or status in LIVE_STATUSES:
        return None
    return "completed" if status == "completed" else "cancelled" if status == "cancelled" else "failed"
