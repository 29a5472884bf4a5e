"""Cases that failed go on from where they stood.

Everything is written before anything runs: decisions that wait for the failed jobs, the fact that the case was reopened
into its journal, and the case's document last, which makes it live. Then its tree is loaded as after the start of a
server, and so a server that dies in between loses nothing: what was not written to the end is a failed case as before.
The failed jobs wait as they do in a case that is held: a rule, a person or another try takes them up. What is no job
begins again by itself; the decision about its failure names the reopening, and that counts once the case is live."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from mendflow.core.engine import LiveItem, Reopening, plan_reopening
from mendflow.core.engine.messages import Event
from mendflow.core.model.errors import Conflict, NotFound, TemporarilyUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.base.cluster import CASE_KIND, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import CaseTree, HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import ITEM_KIND, RUNS_KIND, CaseDocument, ItemRuns, journal_of
from mendflow.services.recovery.decisions import (
    DECISION_KIND,
    OPEN_DECISION_KIND,
    OPEN_STATES,
    OpenMarker,
    waiting_successor,
)
from mendflow.stores.contract import Append, Delete, Put, Store, StoredDocument, Write, WriteDone

REOPENING: Final = "reopening"
PAGE_EVENTS: Final = 5_000
PAGE_DOCUMENTS: Final = 500
CALL: Final = "call"
ENDING_MS: Final = 3_000
LOOK_AGAIN_MS: Final = 50

_encode = msgspec.json.Encoder().encode
_decode_event = msgspec.json.Decoder(Event).decode
_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_decision = msgspec.json.Decoder(Decision).decode
_decode_runs = msgspec.json.Decoder(ItemRuns).decode

TakeUp = Callable[[Sequence[CaseTree]], Awaitable[None]]


class HasHomeElsewhere(Conflict):
    """Another server has the tree of a case."""


class NothingTakenUp(Conflict):
    """The case failed by something else: it could go on, and nothing would follow for what was asked about."""


class Reopened(NamedTuple):
    """`waiting` are the decisions that failed jobs of the case wait for now. `taken_up` are those about the failures
    that are tried again, each with the one that now waits in its place; with none where its item begins again."""

    waiting: list[str]
    taken_up: dict[str, str]


class CasePlan(msgspec.Struct, kw_only=True):
    """How one case of the tree is reopened. `held` are the decisions that its failed jobs wait for; `replaced` are
    those in whose place they stand, of each job the last one last; `restarted` are items that begin again. `tried` are
    decisions about failures of these, and of calls whose cases go on."""

    document: CaseDocument
    version: int
    reopening: Reopening
    held: list[Decision] = []
    replaced: list[list[Decision]] = []
    restarted: list[LiveItem] = []
    tried: list[Decision] = []

    def touched(self) -> Iterator[Decision]:
        return chain(self.tried, *self.replaced)


class CaseReopener:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        homes: HomeRegistry,
        manager: FlowManager,
        take_up: TakeUp,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._events = events
        self._homes = homes
        self._manager = manager
        self._take_up = take_up

    async def reopen(
        self, case: CaseId, *, who: str, about: Collection[str] = (), sight: Sight = EVERYTHING
    ) -> Reopened:
        """Let the tree of a case that failed go on. Refused, with the reason, if it cannot; and if none of the failures
        that these decisions are `about` would be tried again. One that is not in `sight` is as if it were not there."""
        root = root_of(case)
        if root != case:
            raise Conflict(f"case {case} was begun by a message, and its partner was told of its end", case=case)
        await self._ledger.settled()
        if not sight.sees((await self._read(root))[0].project):
            raise _not_found(root)
        if root in self._manager.live:
            raise Conflict(f"case {root} is not over, so there is nothing to reopen", case=root)
        await self._claim(root)
        try:
            await self._ledger.settled()  # its home is on disk before anything of it is live
            plans = await self._plans(root)
            _forget_earlier(plans)
            touched = {each.id for plan in plans for each in plan.touched()}
            if about and touched.isdisjoint(about):
                raise NothingTakenUp(f"case {root} failed by something else", case=root)
            await self._write(plans, who)
        except BaseException:  # nothing of it is live: whatever was written is a failed case as before
            self._homes.release(root, REOPENING)
            raise
        await self._take_up([CaseTree(root)])
        for plan in plans:
            self._events.tell(self._clock.now(), "case", plan.document.id, state="running", message="reopened")
        await self._ledger.settled()
        return _reopened(plans)

    async def _claim(self, root: CaseId) -> None:
        """Make the tree ours. One that has just failed is held for a moment by what still ends; where another server
        has it, there is nothing to wait for."""
        give_up_at = self._clock.now() + ENDING_MS
        await self._demand_not_elsewhere(root)
        while not await self._homes.claim(root, REOPENING):
            await self._demand_not_elsewhere(root)
            if self._clock.now() >= give_up_at:
                raise TemporarilyUnavailable(f"something of case {root} is still under way; ask again in a moment")
            await self._clock.sleep(LOOK_AGAIN_MS)

    async def _demand_not_elsewhere(self, root: CaseId) -> None:
        home = await self._homes.home_of(root, afresh=True)
        if home not in ("", self._homes.server):
            raise HasHomeElsewhere(f"case {root} is on server {home}, which lets it go on, or still ends it", case=root)

    async def _plans(self, case: CaseId) -> list[CasePlan]:
        """The case, and the cases that it called and failed by, those that were called last first."""
        document, version = await self._read(case)
        if document.status != "failed":
            raise Conflict(f"case {case} has not failed: it is {document.status}", case=case)
        if document.mends is not None or document.decision:
            raise Conflict(f"case {case} is an exlet; the case that it mended is to be reopened", case=case)
        if document.posted:
            raise TemporarilyUnavailable(f"jobs that case {case} left behind are not over; ask again later")
        plan = CasePlan(
            document=document,
            version=version,
            reopening=await asyncio.to_thread(plan_reopening, await self._journal(case)),
        )
        called: list[CasePlan] = []
        decisions = await self._decisions(case)
        for item in plan.reopening.failed:
            if item.kind == CALL and (inner := await self._called(case, item)):
                called += inner
                plan.tried += decisions.get(item.serial, [])
            elif item.kind == "job" and (before := [each for each in decisions.get(item.serial, []) if each.job]):
                plan.replaced.append(before)
            else:
                plan.restarted.append(item)
        for item in (*plan.reopening.restarted, *plan.restarted):
            plan.tried += decisions.get(item.serial, [])
            if item.kind == CALL:
                plan.tried += [each async for each in self._inside(CaseId(f"{case}.{item.serial}"))]
        return [*called, plan]

    async def _read(self, case: CaseId) -> tuple[CaseDocument, int]:
        found = await self._store.get(CASE_KIND, case)
        if found is None:
            raise _not_found(case)
        return _decode_case(found.body), found.version

    async def _called(self, case: CaseId, item: LiveItem) -> list[CasePlan]:
        """The case that a call failed by, if it can go on; else the call begins again."""
        try:
            return await self._plans(CaseId(f"{case}.{item.serial}"))
        except (Conflict, NotFound):
            return []

    async def _journal(self, case: CaseId) -> list[Event]:
        events: list[Event] = []
        while page := await self._store.read(journal_of(case), len(events), PAGE_EVENTS):
            events += map(_decode_event, page)
            await asyncio.sleep(0)
        return events

    async def _decisions(self, case: CaseId) -> dict[int, list[Decision]]:
        """By the serials of failed items of the case: the decisions about them that no other has replaced. The last let
        the flow hear of it, or was made by a reopening that was cut short."""
        found: dict[int, list[Decision]] = {}
        async for each in self._aborts(f"{case}/"):
            found.setdefault(each.serial, []).append(each)
        return {serial: sorted(each, key=lambda one: (one.at, one.id)) for serial, each in found.items()}

    async def _inside(self, case: CaseId) -> AsyncIterator[Decision]:
        """Decisions about failures in a called case, and in what that called: they count no more when the call begins
        again."""
        for prefix in (f"{case}/", f"{case}."):
            async for each in self._aborts(prefix):
                yield each

    async def _aborts(self, prefix: str) -> AsyncIterator[Decision]:
        async for document in self._store.scan(DECISION_KIND, prefix):
            each = _decode_decision(document.body)
            if each.type is ExceptionType.ABORT and not each.replaced_by and not each.engine:
                yield each

    # Writing

    async def _write(self, plans: Sequence[CasePlan], who: str) -> None:
        for plan in plans:
            plan.held = await self._wait_for(plan.replaced, who)
        await self._mark_tried(plans)
        for plan in plans:
            await self._write_items(plan)
            fact = plan.reopening.fact(who, also=[each.item for each in plan.restarted])
            entry = _encode(Event(self._clock.now(), fact))
            await self._now([Append(journal_of(plan.document.id), [entry], plan.reopening.length)])
        for plan in reversed(plans):
            await self._now([Put(CASE_KIND, plan.document.id, _encode(_live(plan.document)), plan.version)])

    async def _wait_for(self, before: Sequence[Sequence[Decision]], who: str) -> list[Decision]:
        """A decision for each job that waits, in the place of those before. Its marker is written before it, and it
        before those that it replaces, which are open no more."""
        note = f"the case was reopened by {who}" if who else "the case was reopened"
        after = [waiting_successor(each[-1], self._clock) for each in before]
        for each in after:
            each.note = note
        await self._put(OPEN_DECISION_KIND, {each.id: OpenMarker(each.id) for each in after})
        await self._put(DECISION_KIND, {each.id: each for each in after})
        pairs = [(old, new) for replaced, new in zip(before, after, strict=True) for old in replaced]
        await self._put(DECISION_KIND, {old.id: replace(old, replaced_by=new.id) for old, new in pairs})
        markers = [found async for found in self._found(OPEN_DECISION_KIND, [old.id for old, _ in pairs])]
        await self._now([Delete(OPEN_DECISION_KIND, found.id, found.version) for found in markers])
        return after

    async def _mark_tried(self, plans: Sequence[CasePlan]) -> None:
        """Of a failure that no job waits for, its own decision says that it is tried again. It names the reopening, of
        the whole tree: until the document of its first case is written, the failure is as it was."""
        number = plans[-1].document.reopened + 1  # the last one is the first case of the tree
        over = {each.id: each for plan in plans for each in plan.tried if each.state not in OPEN_STATES}
        await self._put(DECISION_KIND, {id: replace(each, tried_in=number) for id, each in over.items()})

    async def _write_items(self, plan: CasePlan) -> None:
        """Items that begin again have had a run before; what was told of items that may still begin is forgotten."""
        case, runs = plan.document.id, dict[str, ItemRuns]()
        again = [(f"{case}/{item.item}", item) for item in (*plan.reopening.restarted, *plan.restarted)]
        async for found in self._found(RUNS_KIND, [id for id, _ in again]):
            runs[found.id] = _decode_runs(found.body)
        for id, item in again:
            runs.setdefault(id, ItemRuns(case=case, item=item.item, serials=[])).serials.append(item.serial)
        await self._put(RUNS_KIND, runs)
        names = (*plan.reopening.forgotten, *(each.item for each in plan.reopening.failed))
        told = [found async for found in self._found(ITEM_KIND, [f"{case}/{name}" for name in names])]
        await self._now([Delete(ITEM_KIND, found.id, found.version) for found in told])

    async def _found(self, kind: str, ids: Sequence[str]) -> AsyncIterator[StoredDocument]:
        """Those of the documents that are there."""
        for start in range(0, len(ids), PAGE_DOCUMENTS):
            for found in await self._store.get_many(kind, ids[start : start + PAGE_DOCUMENTS]):
                yield found

    async def _put(self, kind: str, documents: Mapping[str, object]) -> None:
        versions = {found.id: found.version async for found in self._found(kind, list(documents))}
        await self._now([Put(kind, id, _encode(each), versions.get(id, 0)) for id, each in documents.items()])

    async def _now(self, writes: Sequence[Write]) -> None:
        for start in range(0, len(writes), PAGE_DOCUMENTS):
            results = await self._store.write(writes[start : start + PAGE_DOCUMENTS])
            if not all(isinstance(result, WriteDone) for result in results):
                raise Conflict("the case was changed by another server meanwhile; ask again")


def _not_found(case: CaseId) -> NotFound:
    return NotFound(f"there is no case {case}; `mendflow cases` lists them")


def _forget_earlier(plans: Sequence[CasePlan]) -> None:
    """What was tried again in a reopening before has failed anew since, and of that there is another decision."""
    made = plans[-1].document.reopened
    for plan in plans:
        plan.tried = [each for each in plan.tried if not 0 < each.tried_in <= made]


def _reopened(plans: Sequence[CasePlan]) -> Reopened:
    taken_up = {each.id: "" for plan in plans for each in plan.tried}
    for plan in plans:
        for before, after in zip(plan.replaced, plan.held, strict=True):
            taken_up |= {each.id: after.id for each in before}
    return Reopened([each.id for plan in plans for each in plan.held], taken_up)


def _live(document: CaseDocument) -> CaseDocument:
    """The document of a case that goes on."""
    return replace(
        document,
        status="running",
        ended_at=0,
        outputs={},
        fault=None,
        counts=[],
        serials=0,
        ending=None,
        reopened=document.reopened + 1,
    )
