"""Which stored files have come to a case: with its inputs, from its own jobs, by a message or a person, or in its flow.

An expression can write any map, and so one that looks like a reference to a file. A digest that somebody has learned
would then open the file: a job of the case would read it. So before a job is queued, and before somebody is given a
file because a case refers to it, the file must have come to the case from outside its expressions. What comes is in the
journals of its tree. What jobs leave is remembered as they end, so that the journals are read only for what is not
known: after a restart, or for a file that never came.

A file with a logical name is read by that name: if the catalogue has it in the project of the case, or if somebody who
can look at it has given it. It is remembered by name and digest, and so opens nothing without the name."""

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
    SubmitJob,
    WriteData,
)
from mendflow.core.engine.state import Item
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import Job, JobSpec, Outcome
from mendflow.core.model.principals import NO_PROJECT
from mendflow.core.model.values import FileRef, Value
from mendflow.core.recovery.ids import flow_job_id
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND, first_case_of
from mendflow.services.base.contracts import FileDemand, NewJob, SubmissionFailed
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.facts import CaseEnded, ItemFinished
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import CaseDocument, LiveCase, journal_of
from mendflow.services.cases.staging import Resolve
from mendflow.services.domains.spilled_values import SpilledValues
from mendflow.services.domains.work_documents import DOMAIN_PORT
from mendflow.services.domains.work_files import (
    files_given_by_outcome,
    files_in_flow,
    files_read_by_job,
    logical_files_in_flow,
    logical_sources_in_job,
    may_give_files,
    once,
    spilled_in_value,
)
from mendflow.stores.contract import Store

FOREIGN_FILE: Final = "foreignFile"
"""The fault of a job that refers to a file which did not come to its case."""
FLOWS_MAX: Final = 1_000
TREES_MAX: Final = 10_000
JOURNAL_PAGE: Final = 1_000
BREATH_EVERY: Final = 200
_BETWEEN: Final = "\0"

_decode_event: Final = msgspec.json.Decoder(Event).decode
_decode_case: Final = msgspec.json.Decoder(CaseDocument).decode
_decode_job: Final = msgspec.json.Decoder(Job).decode


class FileOrigins:
    """`resolve` gives the file that has a logical name, `spilled` what stored values refer to."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        manager: FlowManager,
        hub: Hub,
        resolve: Resolve,
        spilled: SpilledValues,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._manager = manager
        self._resolve = resolve
        self._spilled = spilled
        self._came: OrderedDict[CaseId, set[str]] = OrderedDict()  # by the first case of a history
        self._in_flows: OrderedDict[str, frozenset[str]] = OrderedDict()  # by the digest of the flow
        hub.provide(FileOrigins, self)
        hub.provide(FileDemand, self)
        hub.subscribe(ItemFinished, self._item_finished)
        hub.subscribe(CaseEnded, self._case_ended)

    def _item_finished(self, fact: ItemFinished) -> None:
        """What a called case gives back was made by expressions; what it got is remembered by itself."""
        if not may_give_files(fact.outcome) or not any(files_given_by_outcome(fact.outcome)):
            return
        item = fact.live.case.instances.get(fact.live.case.index.serials.get(fact.serial, 0))
        order = item.order if isinstance(item, Item) else None
        if not isinstance(order, StartCalledCase):
            outcome = made_by_job(fact.outcome) if isinstance(order, SubmitJob) else fact.outcome
            self._remember(first_case_of(fact.live.id), _keys_of_outcome(outcome))

    def _case_ended(self, fact: CaseEnded) -> None:
        self._came.pop(fact.document.id, None)

    def _remember(self, first: CaseId, digests: Iterable[str]) -> None:
        self._came.setdefault(first, set()).update(digests)
        self._came.move_to_end(first)
        if len(self._came) > TREES_MAX:
            self._came.popitem(last=False)

    async def demand_job(self, case: CaseId, spec: JobSpec) -> None:
        """Refuse a job that would read a file which did not come to its case."""
        logical, stored = files_read_by_job(spec)
        named = {_key_of_file(each) for each in logical}
        if spec.replicas:
            named |= {_origin_key(name) for name in logical_sources_in_job(spec)}
        if stored or named:
            await self._demand(case, {each.sha256 for each in stored}, named)
        if stored:  # values that are stored because of their size are among them
            await self._demand_inside(case, [*spilled_in_value(spec.args), *spilled_in_value(spec.kwargs)])

    async def demand_value(self, case: CaseId, value: Value) -> None:
        """Refuse what a case would send elsewhere with such a file."""
        if found := [*files_in_flow(value), *logical_files_in_flow(value)]:
            await self._demand_files(case, found)
            await self._demand_inside(case, spilled_in_value(value))

    def note_given(self, case: CaseId, files: Collection[FileRef]) -> None:
        self._remember(first_case_of(case), _keys_of_outcome(Outcome(files={each.sha256: each for each in files})))

    async def _demand_inside(self, case: CaseId, digests: Iterable[str]) -> None:
        """Refuse what is in these stored values. They themselves have come."""
        if self._is_ours(case):
            async for files in self._spilled.files_by_depth(digests):
                await self._demand_files(case, files)

    async def _demand_files(self, case: CaseId, files: list[FileRef]) -> None:
        named = {_key_of_file(each) for each in files if each.logical}
        await self._demand(case, {each.sha256 for each in once(files)}, named)

    async def _demand(self, case: CaseId, stored: set[str], named: Collection[str]) -> None:
        """The catalogue opens a file with a logical name, under that name: its digest alone has not come by that."""
        if not (stored or named) or not self._is_ours(case):
            return
        project = await self._project_of(case) if named else ""
        unnamed = {each for each in named if not await self._is_of(project, each)}
        if foreign := await self.foreign(case, stored | unnamed):
            first = min(foreign)
            told = f"{first[:12]}..." if first in stored else f"lfn:{first.partition(_BETWEEN)[0]:.200}"
            raise Forbidden(
                f"it refers to the file {told}, which did not come to this case: neither as an input,"
                " nor from one of its jobs, nor in its flow, nor by a logical name that the catalogue has for it in"
                " the project of the case; give it to the case as an input"
            )

    async def _project_of(self, case: CaseId) -> str:
        first = first_case_of(case)
        if (live := self._manager.live.get(case) or self._manager.live.get(first)) is not None:
            return live.document.project
        await self._ledger.settled()
        found = await self._store.get(CASE_KIND, first)
        return _decode_case(found.body).project if found is not None else NO_PROJECT

    def _is_ours(self, case: CaseId) -> bool:
        """What another domain has sent is checked against what it sent."""
        first = self._manager.live.get(first_case_of(case))
        return first is None or first.document.port != DOMAIN_PORT

    async def _is_of(self, project: str, named: str) -> bool:
        """Whether the catalogue has a file of the project with this name, and this digest if that is said."""
        name, _, digest = named.partition(_BETWEEN)
        try:
            return digest in ("", (await self._resolve(name, project)).sha256)
        except (NotFound, InvalidRequest):
            return False

    async def foreign(self, case: CaseId, digests: Collection[str]) -> set[str]:
        """Those that did not come to the case, or to the others of its history. A file with a logical name is asked for
        as `_origin_key` makes it."""
        first = first_case_of(case)
        left = set(digests) - self._came.get(first, set())
        live = self._manager.live.get(case)
        while left and live is not None:
            left -= self._named_by(live)
            live = self._manager.live.get(live.document.parent) if live.document.parent is not None else None
        if left and (root := self._manager.live.get(first)) is not None:
            given = set(_keys_in(root.document.inputs))
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
            known = frozenset(_keys_in(live.flow))
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
        jobs = set[str]()
        async for stored in self._store.scan(JOB_KIND, first):
            if first_case_of(stored.id) == first:
                jobs.add(flow_job_id(JobId(stored.id)))
                outcome = _decode_job(stored.body).outcome
                found.update(_keys_of_outcome(made_by_job(outcome) if outcome is not None else None))
            passed += 1
            if passed % BREATH_EVERY == 0:
                await asyncio.sleep(0)
        for each in documents:
            async for event in self._events(each.id):
                found.update(_keys_of_event(event, first, each.id, calls, jobs))
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


def _origin_key(name: str, sha256: str = "") -> str:
    """A logical name, of a file with this digest or of any, as it is remembered: no digest looks like that."""
    return f"{name.removeprefix(LOGICAL_PREFIX)}{_BETWEEN}{sha256}"


def _key_of_file(ref: FileRef) -> str:
    return _origin_key(ref.logical, ref.sha256)


def _keys_in(part: Any) -> Iterator[str]:
    """What comes with a part of a flow, or with a value that somebody has given: digests, and logical names, which
    whoever gives them could look at."""
    yield from (each.sha256 for each in files_in_flow(part))
    for each in logical_files_in_flow(part):
        yield from (_origin_key(each.logical), _key_of_file(each))


def made_by_job(outcome: Outcome) -> Outcome:
    """What a job has made itself. Its outputs may refer to what it was given besides, which has come already; and the
    code of a job, which can say anything, says what they refer to."""
    spilled: list[Value] = [{"$spilled": digest, "bytes": 0} for digest in spilled_in_value(outcome.outputs)]
    return msgspec.structs.replace(outcome, outputs=spilled)


def _keys_of_outcome(outcome: Outcome | None) -> Iterator[str]:
    if outcome is not None:
        logical, stored = files_given_by_outcome(outcome)
        yield from (each.sha256 for each in stored)
        for each in logical:
            yield from (_origin_key(each.logical), _key_of_file(each))


def _keys_of_event(
    event: Event, first: CaseId, case: CaseId, calls: Collection[tuple[CaseId, int]], jobs: Collection[str]
) -> Iterator[str]:
    """What came with an event: not what expressions of the same history have made up."""
    fact = event.fact
    if isinstance(fact, StartCase):
        yield from _keys_in(fact.flow)
        yield from _keys_in(fact.inputs) if case == first else ()
    elif isinstance(fact, FinishItem):
        outcome = fact.outcome
        if (case, fact.serial) in calls:
            outcome = Outcome(files=outcome.files)
        elif f"{case}/{fact.serial}" in jobs:
            outcome = made_by_job(outcome)
        yield from _keys_of_outcome(outcome)
    elif isinstance(fact, Deliver):
        yield from _keys_in(fact.value)
    elif isinstance(fact, WriteData | RestartItem):
        yield from _keys_in(fact.values) if not fact.by else ()
    elif isinstance(fact, ForceComplete):
        yield from _keys_in(fact.outputs) if not fact.by else ()
