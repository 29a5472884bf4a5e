"""Reads cases from the store: those that are not over as they stand in memory, and what others want to know of the jobs
and the called cases of one, live or over.

A case is its newest snapshot and the entries of its journal behind that. A tree that came from another server is fenced
with the next entry of each journal, so that nobody else goes on with it."""

import logging
from collections.abc import Callable

import msgspec

from mendflow.core.engine import Case, evolve, restore
from mendflow.core.engine.messages import CaseMoved, Event
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, ItemId, item_name
from mendflow.core.model.jobs import Job
from mendflow.core.results.earlier_results import EarlierResults
from mendflow.services.base.cluster import CASE_KIND, LIVE_STATUSES, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import CaseTree, HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases import unstarted_cases
from mendflow.services.cases.facts import LoadedJobs
from mendflow.services.cases.journals import catch_up
from mendflow.services.cases.live_case import (
    ITEM_KIND,
    RUNS_KIND,
    SNAPSHOT_KIND,
    CaseDocument,
    ItemDocument,
    ItemRuns,
    LiveCase,
    Snapshot,
    journal_of,
    state_of,
)
from mendflow.services.cases.long_steps import LongSteps
from mendflow.stores.contract import Append, Store, WriteDone

log = logging.getLogger("mendflow.cases")

SNAPSHOT_EVERY_EVENTS = 2_000
JOBS_AT_ONCE = 1_000

GiveUp = Callable[[CaseDocument, str], None]
"""Ends a case as failed, with a message."""

_encode = msgspec.json.Encoder().encode
_decode_document = msgspec.json.Decoder(CaseDocument).decode
_decode_snapshot = msgspec.json.Decoder(Snapshot).decode
_decode_item = msgspec.json.Decoder(ItemDocument).decode
_decode_runs = msgspec.json.Decoder(ItemRuns).decode
_decode_job = msgspec.json.Decoder(Job).decode


class CaseReader:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        homes: HomeRegistry,
        hub: Hub,
        long_steps: LongSteps | None = None,
    ) -> None:
        self._long_steps = long_steps
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._events = events
        self._homes = homes
        self._hub = hub

    async def read_tree(self, tree: CaseTree, give_up: GiveUp) -> list[LiveCase]:
        """The cases of a tree that are not over. Each that cannot be read is given up."""
        found: list[LiveCase] = []
        there = False
        async for document in self._store.scan(CASE_KIND, tree.root):
            if root_of(document.id) != tree.root:
                continue
            there |= document.id == tree.root
            try:
                case = _decode_document(document.body)
            except msgspec.MsgspecError:
                log.exception(
                    "the document of case %s cannot be read, so the case does not continue",
                    document.id,
                    extra={"case": document.id},
                )
                continue
            if case.live or case.posted:
                self._ledger.known(CASE_KIND, document.id, document.version)
                live = await self._read_or_report(case, give_up, fenced=tree.moved or tree.was_ours)
                found += [live] if live is not None else []
        if tree.begins and not there and await self._has_settled(tree.root):
            return await self.read_tree(tree, give_up)
        return found

    async def _read_or_report(self, document: CaseDocument, give_up: GiveUp, *, fenced: bool) -> LiveCase | None:
        """One case; None if it never began. If it cannot be read, it is given up, so that the others continue."""
        try:
            return await self._read(document, fenced=fenced)
        except StoreUnavailable:
            raise
        except Exception as error:  # whatever is wrong with one case, the others must go on
            log.exception(
                "case %s cannot be read and has failed; run it again", document.id, extra={"case": document.id}
            )
            message = f"what the store holds of this case cannot be read ({error!r:.300}); run it again"
            give_up(document, message)
            return None

    async def _read(self, document: CaseDocument, *, fenced: bool) -> LiveCase | None:
        case, position, version = Case.blank(), 0, 0
        kept = await self._store.get(SNAPSHOT_KIND, document.id)
        if kept is not None:
            image = _decode_snapshot(kept.body)
            case, position, version = restore(image.state), image.position, kept.version
            self._ledger.known(SNAPSHOT_KIND, document.id, version)
        live = LiveCase(case, document)
        live.snapshot_due = position + SNAPSHOT_EVERY_EVENTS
        live.position = position
        await catch_up(self._store, self._clock, live, self._long_steps)
        if live.case.flow is None:
            # The document was written, but not the first event.
            if document.id != root_of(document.id):
                self._ledger.drop(CASE_KIND, document.id)  # the caller starts it again
                return None
            return await self._read(document, fenced=fenced) if await self._has_settled(document.id) else None
        if fenced:
            await self._fence(live)
        await self._restore_counts(live)
        return live

    async def before(self, live: LiveCase) -> Case:
        """A case of ours as its journal has it."""
        await self._ledger.settled()
        again = LiveCase(Case.blank(), live.document)
        if (kept := await self._store.get(SNAPSHOT_KIND, live.id)) is not None:
            image = _decode_snapshot(kept.body)
            again.case, again.position = restore(image.state), image.position
        await catch_up(self._store, self._clock, again, self._long_steps)
        if again.position != live.position:
            raise StoreUnavailable(f"another server has taken case {live.id}; reading everything again")
        return again.case

    async def _has_settled(self, root: CaseId) -> bool:
        return await unstarted_cases.settle(self._store, self._clock, self._homes.server, root)

    async def _fence(self, live: LiveCase) -> None:
        """Fence: write the next journal entry, so that the former server, or a delayed write of our own, is refused.
        Whatever was written before it is valid.

        A server that was paused after it took the case may have read the fence of the server that took it over later,
        and would write behind it: so after the journal the home is checked again. A server that takes the case later
        than that either fences before our entry, or finds it."""
        taken = f"another server has taken case {live.id}; reading everything again"
        if not await self._homes.is_still_ours(root_of(live.id)):
            raise StoreUnavailable(taken)
        while True:
            event = Event(self._clock.now(), CaseMoved(server=self._homes.server))
            [result] = await self._store.write([Append(journal_of(live.id), [_encode(event)], live.position)])
            if isinstance(result, WriteDone):
                break
            if await catch_up(self._store, self._clock, live, self._long_steps):
                # The former server may have restarted under the same home, and must not be fenced out by one that was
                # paused.
                raise StoreUnavailable(taken)
        evolve(live.case, event)
        live.position += 1
        message = f"server {self._homes.server} goes on with it"
        self._events.tell(event.at, "case", live.id, state=live.document.status, message=message)

    async def _restore_counts(self, live: LiveCase) -> None:
        restored = set()
        async for found in self._store.scan(RUNS_KIND, f"{live.id}/"):
            runs = _decode_runs(found.body)
            self._ledger.known(RUNS_KIND, found.id, found.version)
            live.runs[runs.item] = runs
            live.past.update(runs.serials)
        if live.document.rerun_of is not None:
            live.earlier = EarlierResults(await self.jobs_of(live.document.rerun_of))
        results, jobs = self._hub.provider(LoadedJobs), list[Job]()
        async for found in self._store.scan("job", f"{live.id}/"):
            job = _decode_job(found.body)
            jobs.append(job)
            if results is not None and len(jobs) >= JOBS_AT_ONCE:
                await results.jobs_loaded(live, jobs)
                jobs = []
            self._clock.catch_up(max(job.created_at, *(attempt.granted_at for attempt in job.history), job.finished_at))
            live.move_job(job, state_of(job, runs=False))  # not before its pilot reports that it has begun
        if results is not None:
            await results.jobs_loaded(live, jobs)
        async for found in self._store.scan(ITEM_KIND, f"{live.id}/"):
            item = _decode_item(found.body)
            self._ledger.known(ITEM_KIND, found.id, found.version)
            live.noted.add(found.id)
            if item.kind == "invoke" and item.state == "completed":
                live.count_call(item.item, item.name)
            elif item.kind not in ("receive", "invoke"):  # these are not work, and are not counted
                live.tally.move(item.name, item.kind, live.take_back(item.serial), item.state)
            restored.add(item.serial)
        for serial in list(live.failed):
            live.note_told(serial)
        for called in (await self.cases_called_by(live.id)).values():
            serial, ended = called.parent_serial, called.status not in LIVE_STATUSES
            gone = serial in restored or serial in live.past
            if ended and called.parent_item and not gone and serial not in live.case.index.serials:
                live.tally.move(item_name(called.parent_item), "call", "", called.status)

    async def jobs_of(self, case: CaseId) -> list[Job]:
        """The jobs of an earlier case, also those that were submitted again."""
        await self._ledger.settled()
        return [_decode_job(found.body) async for found in self._store.scan("job", f"{case}/")]

    async def cases_called_by(self, case: CaseId) -> dict[ItemId, CaseDocument]:
        """The cases that a case has called, by the item that called them."""
        called = sorted(await self.cases_begun_by(case), key=lambda each: each.parent_serial)
        return {each.parent_item: each for each in called if each.parent_item is not None}

    async def cases_begun_by(self, case: CaseId) -> list[CaseDocument]:
        """The cases that a case has begun, whether or not it waits for them."""
        await self._ledger.settled()
        found = [_decode_document(found.body) async for found in self._store.scan(CASE_KIND, f"{case}.")]
        return [each for each in found if each.parent == case]
