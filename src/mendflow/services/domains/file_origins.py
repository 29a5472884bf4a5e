"""Which stored files have come to a case: with its inputs, from its own jobs, by a message or a person, or in its flow.

An expression can write any map, and so one that looks like a reference to a file. A digest that somebody has learned
would then open the file: a job of the case would read it. So before a job is queued, and before somebody is given a
file because a case refers to it, the file must have come to the case from outside its expressions. What comes is in the
journals of its tree. What jobs leave is remembered as they end, so that the journals are read only for what is not
known: after a restart, or for a file that never came."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from typing import Any, Final

import msgspec

from mendflow.core.engine.messages import (
    Deliver,
    Event,
    FinishItem,
    ForceComplete,
    RestartItem,
    StartCalledCase,
    StartCase,
    WriteData,
)
from mendflow.core.engine.state import Item
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job, JobSpec, Outcome
from mendflow.core.model.values import FileRef
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND, first_case_of
from mendflow.services.base.contracts import NewJob, SubmissionFailed
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.facts import CaseEnded, ItemFinished
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import CaseDocument, LiveCase, journal_of
from mendflow.services.cases.staging import Resolve
from mendflow.services.domains.work_documents import DOMAIN_PORT
from mendflow.services.domains.work_files import (
    files_in_flow,
    files_in_job,
    files_in_outcome,
    logical_files_in_job,
)
from mendflow.stores.contract import Store

FOREIGN_FILE: Final = "foreignFile"
"""The fault of a job that refers to a file which did not come to its case."""
FLOWS_MAX: Final = 1_000
TREES_MAX: Final = 10_000
JOURNAL_PAGE: Final = 1_000
BREATH_EVERY: Final = 200

_decode_event: Final = msgspec.json.Decoder(Event).decode
_decode_case: Final = msgspec.json.Decoder(CaseDocument).decode
_decode_job: Final = msgspec.json.Decoder(Job).decode


class FileOrigins:
    """`resolve` gives the file that has a logical name."""

    def __init__(self, *, store: Store, ledger: Ledger, manager: FlowManager, hub: Hub, resolve: Resolve) -> None:
        self._store = store
        self._ledger = ledger
        self._manager = manager
        self._resolve = resolve
        self._came: OrderedDict[CaseId, set[str]] = OrderedDict()  # by the first case of a history
        self._in_flows: OrderedDict[str, frozenset[str]] = OrderedDict()  # by the digest of the flow
        hub.provide(FileOrigins, self)
        hub.subscribe(ItemFinished, self._item_finished)
        hub.subscribe(CaseEnded, self._case_ended)

    def _item_finished(self, fact: ItemFinished) -> None:
        """What a called case gives back was made by expressions; what it got is remembered by itself."""
        found = files_in_outcome(fact.outcome)
        if not found:
            return
        item = fact.live.case.instances.get(fact.live.case.index.serials.get(fact.serial, 0))
        if not (isinstance(item, Item) and isinstance(item.order, StartCalledCase)):
            self._remember(first_case_of(fact.live.id), (each.sha256 for each in found))

    def _case_ended(self, fact: CaseEnded) -> None:
        self._came.pop(fact.document.id, None)

    def _remember(self, first: CaseId, digests: Iterable[str]) -> None:
        self._came.setdefault(first, set()).update(digests)
        self._came.move_to_end(first)
        if len(self._came) > TREES_MAX:
            self._came.popitem(last=False)

    async def demand_job(self, case: CaseId, spec: JobSpec) -> None:
        """Refuse a job that would read a file which did not come to its case."""
        stored = {each.sha256 for each in files_in_job(spec)}
        named = [each for each in logical_files_in_job(spec) if each.sha256]
        if stored or named:
            await self._demand(case, stored, named)

    async def demand_value(self, case: CaseId, value: Any) -> None:
        """Refuse what a case would send elsewhere with such a file."""
        if stored := {each.sha256 for each in files_in_flow(value)}:
            await self._demand(case, stored, [])

    async def _demand(self, case: CaseId, stored: set[str], named: Collection[FileRef]) -> None:
        """The catalogue opens a file with a logical name, under that name: its digest alone has not come by that."""
        if not self._is_ours(case):
            return
        unnamed = {each.sha256 for each in named if not await self._is_named_so(each)}
        if foreign := await self.foreign(case, stored | unnamed):
            raise Forbidden(
                f"it refers to the file {min(foreign)[:12]}..., which did not come to this case: neither as an input,"
                " nor from one of its jobs, nor in its flow, nor by a logical name that the catalogue has for it;"
                " give it to the case as an input"
            )

    def _is_ours(self, case: CaseId) -> bool:
        """What another domain has sent is checked against what it sent."""
        first = self._manager.live.get(first_case_of(case))
        return first is None or first.document.port != DOMAIN_PORT

    async def _is_named_so(self, ref: FileRef) -> bool:
        try:
            return (await self._resolve(ref.logical)).sha256 == ref.sha256
        except (NotFound, InvalidRequest):
            return False

    async def foreign(self, case: CaseId, digests: Collection[str]) -> set[str]:
        """Those that did not come to the case, or to the others of its history."""
        first = first_case_of(case)
        left = set(digests) - self._came.get(first, set())
        live = self._manager.live.get(case)
        while left and live is not None:
            left -= self._named_by(live)
            live = self._manager.live.get(live.document.parent) if live.document.parent is not None else None
        if left and (root := self._manager.live.get(first)) is not None:
            given = {each.sha256 for each in files_in_flow(root.document.inputs)}
            self._remember(first, given)
            left -= given
        if left:
            came = await self._read(first)
            if first in self._manager.live:
                self._remember(first, came)
            left -= came
        return left

    def _named_by(self, live: LiveCase) -> frozenset[str]:
        """The files that the flow of a case names. Whoever deployed it could read them."""
        known = self._in_flows.get(live.document.digest)
        if known is None:
            known = frozenset(each.sha256 for each in files_in_flow(live.flow))
            self._in_flows[live.document.digest] = known
            if len(self._in_flows) > FLOWS_MAX:
                self._in_flows.popitem(last=False)
        return known

    async def _read(self, first: CaseId) -> set[str]:
        """Everything that has come to a history by now, as the store has it."""
        await self._ledger.settled()
        found, passed = set[str](), 0
        documents = [each async for each in self._documents(first)]
        calls = {(each.parent, each.parent_serial) for each in documents if each.parent is not None}
        async for stored in self._store.scan(JOB_KIND, first):
            if first_case_of(stored.id) == first:
                found.update(each.sha256 for each in files_in_outcome(_decode_job(stored.body).outcome))
            passed += 1
            if passed % BREATH_EVERY == 0:
                await asyncio.sleep(0)
        for each in documents:
            async for event in self._events(each.id):
                found.update(ref.sha256 for ref in _came_by(event, first, each.id, calls))
        return found

    async def _documents(self, first: CaseId) -> AsyncIterator[CaseDocument]:
        async for stored in self._store.scan(CASE_KIND, first):
            if first_case_of(stored.id) == first:
                yield _decode_case(stored.body)

    async def _events(self, case: CaseId) -> AsyncIterator[Event]:
        position = 0
        while page := await self._store.read(journal_of(case), position, JOURNAL_PAGE):
            for entry in page:
                yield _decode_event(entry)
            position += len(page)
            await asyncio.sleep(0)
            if len(page) < JOURNAL_PAGE:
                return


async def demand_own_files(origins: FileOrigins, job: NewJob) -> None:
    """Refuse a job, as one that cannot be submitted, if it would read a file that did not come to its case."""
    try:
        await origins.demand_job(job.case, job.spec)
    except Forbidden as error:
        fault = Fault(
            name=FOREIGN_FILE, category=Category.REFUSED, message=error.message, stage=AttemptStage.SUBMISSION
        )
        raise SubmissionFailed(fault) from error


def _came_by(event: Event, first: CaseId, case: CaseId, calls: Collection[tuple[CaseId, int]]) -> Iterator[FileRef]:
    """The stored files that came with an event: not those which expressions of the same history have made up, nor those
    with logical names, which whoever writes such a name has not shown to have."""
    fact = event.fact
    if isinstance(fact, StartCase):
        yield from files_in_flow(fact.flow)
        yield from files_in_flow(fact.inputs) if case == first else ()
    elif isinstance(fact, FinishItem):
        outcome = Outcome(files=fact.outcome.files) if (case, fact.serial) in calls else fact.outcome
        yield from files_in_outcome(outcome)
    elif isinstance(fact, Deliver):
        yield from files_in_flow(fact.value)
    elif isinstance(fact, WriteData | RestartItem):
        yield from files_in_flow(fact.values) if not fact.by else ()
    elif isinstance(fact, ForceComplete):
        yield from files_in_flow(fact.outputs) if not fact.by else ()
