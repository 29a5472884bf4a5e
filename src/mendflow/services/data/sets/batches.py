"""The controller of data sets: starts cases for batches, and closes sets that follow others.

The case of a batch has a key made from the batch, so it does not matter how many servers start it, or how often. The
server that made a batch starts its case at once; one server, chosen by the name of the set among the live ones, starts
what was left. Everything that this needs is in the journals of sets and in the documents of cases: a crash loses
nothing."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, Protocol

import msgspec

from mendflow.core.data.data_set import (
    DataSet,
    FileBatch,
    batch_inputs,
    batch_key,
    close_set,
    may_close,
    next_due,
    set_of_batch_key,
)
from mendflow.core.model.data_sets import BatchEnded, BatchStarted, BatchStatus, SetFact
from mendflow.core.model.errors import RequestError, StoreUnavailable, TemporarilyUnavailable
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.values import Value
from mendflow.services.base.background_tasks import cancel_tasks, sleep_unless
from mendflow.services.base.cluster import CASE_KIND, LIVE_STATUSES
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.base.responsibility import Responsibility
from mendflow.services.cases.case_starter import StartOptions
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.data.sets.arrivals import Arrivals
from mendflow.services.data.sets.store import DataSetStore
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.data-sets")

LOOK_MS: Final = 1_000
LIST_MS: Final = 5_000
"""How often to look for sets that others made, for cases that ended elsewhere, and into the catalogue."""
GRACE_MS: Final = 5_000
"""How long a batch is left to the server that made it."""
STARTS_AT_ONCE: Final = 16
CHUNK: Final = 500
RETRY_MS: Final = 15_000


class CaseLauncher(Protocol):
    """Starts cases; the same key is the same case."""

    async def start(
        self,
        name: str,
        inputs: dict[str, Value],
        who: str,
        options: StartOptions,
        *,
        cache_from: CaseId | None = None,
    ) -> CaseDocument: ...


class _Case(msgspec.Struct):
    """The fields of a case that say whether it has ended."""

    status: str


_decode_case = msgspec.json.Decoder(_Case).decode


class DataSetController:
    """`problems` are why batches could not become cases, by the keys of their cases."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        membership: OwnMembership,
        set_store: DataSetStore,
        arrivals: Arrivals,
        starting: CaseLauncher,
        notices: Notices,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._membership = membership
        self._responsibility = Responsibility(membership)
        self._set_store = set_store
        self._arrivals = arrivals
        self._launcher = starting
        self._notices = notices
        self.problems: dict[str, str] = {}
        self._not_before: dict[str, Instant] = {}
        self._names: set[str] = set()  # of the sets that are not over
        self._wanted: dict[str, None] = {}  # sets that have changed here
        self._drained_sets: set[str] = set()
        self._listed_at: Instant = 0
        self._wake_event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="data sets")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    def wake(self, name: str) -> None:
        """This set has changed."""
        self._wanted[name] = None
        self._wake_event.set()

    def case_ended(self, document: CaseDocument) -> None:
        """Called before the end is on disk."""
        if document.key and (name := set_of_batch_key(document.key)):
            self.wake(name)

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("data sets could not be processed: %s; trying again", error.message)
            except Exception:  # an error in one look must not stop those that follow
                log.exception("data sets could not be processed; trying again")
            await sleep_unless(self._wake_event, self._clock.sleep(LOOK_MS))

    async def look(self) -> None:
        """Process the sets that have changed here, and from time to time those that this server is responsible for."""
        if not self._membership.may_promise():
            return  # other servers may have its cases by now, and will process the sets, too
        wanted, self._wanted = self._wanted, {}
        thorough = self._clock.now() - self._listed_at >= LIST_MS
        if thorough:
            self._names |= set(await self._set_store.unfinished())
            self._listed_at = self._clock.now()
        mine = [each for each in sorted(self._names - wanted.keys()) if self._responsibility.mine(f"data set {each}")]
        for name in [*wanted, *(each for each in mine if thorough or self._is_due(each))]:
            try:
                await self._reconcile(name, here=name in wanted, thorough=thorough)
            except StoreUnavailable:
                self._wanted |= wanted
                raise
            except Exception:  # an error in one set must not stop the others
                log.exception("data set %s could not be processed; trying again", name)

    def _is_due(self, name: str) -> bool:
        """Whether a batch is due because time has passed."""
        state = self._set_store.last_read(name)
        return state is not None and 0 < next_due(state) <= self._clock.now()

    async def _reconcile(self, name: str, *, here: bool, thorough: bool) -> None:
        if thorough:
            await self._arrivals.sweep(name)
        self._names.add(name)
        known = self._set_store.last_read(name)
        before = _progress_key(known) if known is not None else ()
        state = await self._set_store.change(name, _no_facts)
        await self._start(state, self._startable_batches(state, here=here or before != _progress_key(state)))
        if here or thorough:
            await self._note_ended_cases(state)
        await self._close_after(state)
        if before != _progress_key(state):
            for other in await self._following_sets(name):
                self.wake(other)
        if state.is_drained:
            await self._set_store.mark_finished(name)
            self._names.discard(name)

    async def _following_sets(self, name: str) -> list[str]:
        """The sets that follow this one."""
        known = [
            (each, self._set_store.last_read(each) or await self._set_store.find(each)) for each in self._names - {name}
        ]
        return [each for each, state in known if state is not None and name in state.after]

    # Batches become cases

    def _startable_batches(self, state: DataSet, *, here: bool) -> list[FileBatch]:
        now, grace_ms = self._clock.now(), GRACE_MS if self._membership.shared else 0
        return [
            batch
            for batch in state.batches()
            if batch.status == "waiting"
            and (here or now - batch.made_at >= grace_ms)
            and self._not_before.get(batch_key(state, batch), 0) <= now
        ]

    async def _start(self, state: DataSet, batches: Sequence[FileBatch]) -> None:
        for start in range(0, len(batches), STARTS_AT_ONCE):
            chunk = batches[start : start + STARTS_AT_ONCE]
            cases = await asyncio.gather(*(self._start_case(state, batch) for batch in chunk))
            begun = [
                BatchStarted(gathering=batch.rule.name, number=batch.number, attempt=batch.attempt, case=case)
                for batch, case in zip(chunk, cases, strict=True)
                if case is not None
            ]
            await self._set_store.change(state.name, partial(_still_waiting, begun))

    async def _start_case(self, state: DataSet, batch: FileBatch) -> CaseId | None:
        key = batch_key(state, batch)
        try:
            inputs = batch_inputs(state, batch)
            cache_from = batch.earlier or None
            options = StartOptions(key=key, rerun_of=cache_from or "")
            case = await self._launcher.start(batch.rule.flow, inputs, state.owner, options, cache_from=cache_from)
        except (StoreUnavailable, TemporarilyUnavailable):
            self._wanted[state.name] = None  # at the next look
            return None
        except RequestError as error:
            await self._not_started(state, batch, key, error.message)
            return None
        self.problems.pop(key, None)
        return case.id

    async def _not_started(self, state: DataSet, batch: FileBatch, key: str, why: str) -> None:
        self._not_before[key] = self._clock.now() + RETRY_MS
        if self.problems.get(key) != why:
            self.problems[key] = why
            name = f"batch {batch.rule.name}/{batch.number} of data set {state.name}"
            self._notices.post(
                f"{name} does not become a case yet: {why}",
                project=await self._set_store.project_of(state.name) or "",
            )

    # Cases end

    async def _note_ended_cases(self, state: DataSet) -> None:
        running = [batch for batch in state.batches() if batch.status == "running"]
        if not running:
            return
        await self._ledger.settled()
        for start in range(0, len(running), CHUNK):
            chunk = running[start : start + CHUNK]
            found = await self._store.get_many(CASE_KIND, [batch.case for batch in chunk])
            statuses = {each.id: _decode_case(each.body).status for each in found}
            ended = [
                BatchEnded(gathering=batch.rule.name, number=batch.number, attempt=batch.attempt, status=status)
                for batch in chunk
                if (status := _status_of_end(statuses.get(batch.case, ""))) is not None
            ]
            await self._set_store.change(state.name, partial(_still_running, ended))

    async def _close_after(self, state: DataSet) -> None:
        """Close a set that follows others, when nothing can come from these any more."""
        if state.closed or not state.after:
            return
        before = {each: await self._preceding_set(each) for each in state.after}
        if may_close(state, before.get):
            await self._arrivals.sweep(state.name, whole=True)
            by = f"after {', '.join(state.after)}"
            await self._set_store.change(state.name, lambda now: close_set(now, by=by))
            await self._start(state, self._startable_batches(state, here=True))

    async def _preceding_set(self, name: str) -> DataSet | None:
        """A set that another one follows. One that cannot change any more is not read again."""
        if name in self._drained_sets:
            return DataSet(name=name, closed_at=1)
        found = await self._set_store.find(name)
        if found is not None and found.is_drained:
            self._drained_sets.add(name)
        return found


def _no_facts(_: DataSet) -> list[SetFact]:
    return []


def _still_waiting(begun: Iterable[BatchStarted], state: DataSet) -> list[SetFact]:
    """The files of these that have not been reported otherwise."""
    return [fact for fact in begun if _has_status(state, fact, "waiting")]


def _still_running(ended: Iterable[BatchEnded], state: DataSet) -> list[SetFact]:
    return [fact for fact in ended if _has_status(state, fact, "running")]


def _has_status(state: DataSet, fact: BatchStarted | BatchEnded, status: BatchStatus) -> bool:
    batch = state.batch(fact.gathering, fact.number)
    return batch.attempt == fact.attempt and batch.status == status


def _progress_key(state: DataSet) -> tuple[object, ...]:
    """What following sets may wait for, to detect a change."""
    return (len(state.files), state.closed, *(batch.status for batch in state.batches()))


def _status_of_end(status: str) -> BatchStatus | None:
    """How the batch ended whose case has this status, if it has ended."""
    if not status or status in LIVE_STATUSES:
        return None
    return "completed" if status == "completed" else "cancelled" if status == "cancelled" else "failed"
