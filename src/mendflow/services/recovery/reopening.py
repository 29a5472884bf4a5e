"""Cases that failed go on from where they stood.

Everything is written before anything runs: decisions that wait for the failed jobs, the fact that the case was reopened
into its journal, and the case's document last, which makes it live. Then its tree is loaded as after the start of a
server, and so a server that dies in between loses nothing: what was not written to the end is a failed case as before.
The failed jobs wait as they do in a case that is held: a rule, a person or another try takes them up."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.engine import LiveItem, Reopening, plan_reopening
from mendflow.core.engine.messages import Event
from mendflow.core.model.errors import Conflict, NotFound, TemporarilyUnavailable
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.base.cluster import CASE_KIND, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import CaseTree, HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import ITEM_KIND, RUNS_KIND, CaseDocument, ItemRuns, journal_of
from mendflow.services.recovery.decisions import DECISION_KIND, OPEN_DECISION_KIND, OpenMarker, waiting_successor
from mendflow.stores.contract import Append, Delete, Put, Store, Write, WriteDone

REOPENING: Final = "reopening"
PAGE_EVENTS: Final = 5_000
CALL: Final = "call"
ENDING_MS: Final = 3_000
LOOK_AGAIN_MS: Final = 50

_encode = msgspec.json.Encoder().encode
_decode_event = msgspec.json.Decoder(Event).decode
_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_decision = msgspec.json.Decoder(Decision).decode
_decode_runs = msgspec.json.Decoder(ItemRuns).decode

TakeUp = Callable[[Sequence[CaseTree]], Awaitable[None]]


class CasePlan(msgspec.Struct, kw_only=True):
    """How one case of the tree is reopened. `held` are the decisions that its failed jobs wait for; `restarted` are
    items that begin again."""

    document: CaseDocument
    version: int
    reopening: Reopening
    held: list[Decision] = []
    restarted: list[LiveItem] = []


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

    async def reopen(self, case: CaseId, *, who: str) -> list[str]:
        """Let the tree of a case that failed go on; returns the ids of the decisions that now wait for its failed jobs.
        Refused, with the reason, if it cannot go on."""
        root = root_of(case)
        await self._ledger.settled()
        if root in self._manager.live:
            raise Conflict(f"case {root} is not over, so there is nothing to reopen", case=root)
        await self._claim(root)
        try:
            await self._ledger.settled()  # its home is on disk before anything of it is live
            plans = await self._plans(root)
            await self._write(plans, who)
        except BaseException:  # nothing of it is live: whatever was written is a failed case as before
            self._homes.release(root, REOPENING)
            raise
        await self._take_up([CaseTree(root)])
        for plan in plans:
            self._events.tell(self._clock.now(), "case", plan.document.id, state="running", message="reopened")
        await self._ledger.settled()
        return [decision.id for plan in plans for decision in plan.held]

    async def _claim(self, root: CaseId) -> None:
        """Make the tree ours. One that has just failed is held for a moment by what still ends."""
        give_up_at = self._clock.now() + ENDING_MS
        while not await self._homes.claim(root, REOPENING):
            if self._clock.now() >= give_up_at:
                raise TemporarilyUnavailable(f"something of case {root} is still under way; ask again in a moment")
            await self._clock.sleep(LOOK_AGAIN_MS)

    async def _plans(self, case: CaseId) -> list[CasePlan]:
        """The case, and the cases that it called and failed by, those that were called last first."""
        found = await self._store.get(CASE_KIND, case)
        if found is None:
            raise NotFound(f"there is no case {case}; `mendflow cases` lists them")
        document = _decode_case(found.body)
        if document.status != "failed":
            raise Conflict(f"case {case} has not failed: it is {document.status}", case=case)
        if document.mends is not None or document.decision:
            raise Conflict(f"case {case} is an exlet; the case that it mended is to be reopened", case=case)
        if document.posted:
            raise TemporarilyUnavailable(f"jobs that case {case} left behind are not over; ask again later")
        plan = CasePlan(
            document=document,
            version=found.version,
            reopening=await asyncio.to_thread(plan_reopening, await self._journal(case)),
        )
        called: list[CasePlan] = []
        for item in plan.reopening.failed:
            if item.kind == CALL and (inner := await self._called(case, item)):
                called += inner
            elif item.kind == "job" and (decision := await self._decision_about(case, item)) is not None:
                plan.held.append(decision)
            else:
                plan.restarted.append(item)
        return [*called, plan]

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

    async def _decision_about(self, case: CaseId, item: LiveItem) -> Decision | None:
        """The last decision about the failed job: the one that let the flow hear of it."""
        job = JobId(f"{case}/{item.serial}")
        found = [_decode_decision(each.body) async for each in self._store.scan(DECISION_KIND, job)]
        about = [
            each for each in found if each.job == job and each.type is ExceptionType.ABORT and not each.replaced_by
        ]
        return max(about, key=lambda each: (each.at, each.id), default=None)

    # Writing

    async def _write(self, plans: Sequence[CasePlan], who: str) -> None:
        for plan in plans:
            plan.held = [await self._wait_for(decision, who) for decision in plan.held]
        for plan in plans:
            await self._write_items(plan)
            fact = plan.reopening.fact(who, also=[each.item for each in plan.restarted])
            entry = _encode(Event(self._clock.now(), fact))
            await self._now(Append(journal_of(plan.document.id), [entry], plan.reopening.length))
        for plan in reversed(plans):
            await self._now(Put(CASE_KIND, plan.document.id, _encode(_live(plan.document)), plan.version))

    async def _wait_for(self, before: Decision, who: str) -> Decision:
        """A decision that waits, in the place of the one that let the job fail."""
        found = await self._store.get(DECISION_KIND, before.id)
        assert found is not None, f"decision {before.id} was there"
        after = waiting_successor(before, self._clock)
        after.note = f"the case was reopened by {who}" if who else "the case was reopened"
        await self._put(OPEN_DECISION_KIND, after.id, OpenMarker(after.id))
        await self._put(DECISION_KIND, after.id, after)
        await self._now(Put(DECISION_KIND, before.id, _encode(replace(before, replaced_by=after.id)), found.version))
        return after

    async def _write_items(self, plan: CasePlan) -> None:
        """Items that begin again have had a run before; what was told of items that may still begin is forgotten."""
        case = plan.document.id
        for item in (*plan.reopening.restarted, *plan.restarted):
            id = f"{case}/{item.item}"
            found = await self._store.get(RUNS_KIND, id)
            serials = _decode_runs(found.body).serials if found is not None else []
            runs = ItemRuns(case=case, item=item.item, serials=[*serials, item.serial])
            await self._now(Put(RUNS_KIND, id, _encode(runs), found.version if found is not None else 0))
        for name in (*plan.reopening.forgotten, *(each.item for each in plan.reopening.failed)):
            await self._forget(case, name)

    async def _forget(self, case: CaseId, item: ItemId) -> None:
        found = await self._store.get(ITEM_KIND, f"{case}/{item}")
        if found is not None:
            await self._now(Delete(ITEM_KIND, found.id, found.version))

    async def _put(self, kind: str, id: str, document: object) -> None:
        found = await self._store.get(kind, id)
        await self._now(Put(kind, id, _encode(document), found.version if found is not None else 0))

    async def _now(self, write: Write) -> None:
        [result] = await self._store.write([write])
        if not isinstance(result, WriteDone):
            raise Conflict("the case was changed by another server meanwhile; ask again")


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
