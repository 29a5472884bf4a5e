"""Whether the result of an earlier job can be used for a new one, and if not, why not.

A result is found by its key, which says what it was made from: in the case that is run again, if there is one, and then
in all cases of the store. A case never uses what it made itself, not even through the cases that it calls: two equal
jobs in one case are two jobs. What a command reads without declaring it cannot be checked: so results are used without
being asked for only where the job declares enough (core/results/reuse_checks)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from mendflow.core.engine import Case
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.forecasts import ResultForecast, WantedResult
from mendflow.core.model.ids import CaseId, ItemId, item_name
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome
from mendflow.core.model.principals import Sight
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import CachePolicy
from mendflow.core.recovery.ids import serial_of
from mendflow.core.results.earlier_results import (
    AGAIN,
    IF_ASKED,
    JOBS_READ_MAX,
    NEW,
    PASSED_OVER,
    NamedJobs,
    new_element,
    summary,
    why_rerun,
)
from mendflow.core.results.result_key import base_of, number_in, numbered, result_key
from mendflow.core.results.reuse_checks import (
    ALTHOUGH,
    gives_nothing,
    stored_files,
    why_doubted,
    why_never,
    why_not_kept,
    why_to_run,
    why_undeclared,
)
from mendflow.core.results.undo_checks import can_be_undone
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.core.scheduling.amounts import moment
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND, first_case_of
from mendflow.services.base.contracts import Clock, FileStore, NewJob
from mendflow.services.base.events import EventStream
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.facts import CaseEnded, LoadedJobs
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.cases.result_index import IndexedResult, ResultIndex
from mendflow.stores.contract import FieldCondition, Store

CASES_COMPARED = 3
"""In how many earlier cases of its flow a job is looked for that is near to a new one."""

UNDOABLE = "not looked for: it can be undone, and may have been since"

_decode_job = msgspec.json.Decoder(Job).decode
_decode_case = msgspec.json.Decoder(CaseDocument).decode


class LogicalFiles(Protocol):
    async def has(self, ref: FileRef) -> bool:
        """Whether the catalogue still has this file."""
        ...


class Lookup(msgspec.Struct, frozen=True):
    """The outcome that stands for a new job's, if there is one; why, or why there is none; and the key under which its
    result is found later."""

    outcome: Outcome | None
    reason: str
    key: str


class ResultCache:
    def __init__(
        self,
        store: Store,
        file_store: FileStore,
        catalogue: LogicalFiles,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        hub: Hub,
    ) -> None:
        self.index = ResultIndex(store, ledger)
        self._store = store
        self._file_store = file_store
        self._catalogue = catalogue
        self._ledger = ledger
        self._clock = clock
        self._events = events
        # by tree of cases: how many of its jobs are made from the same, by the beginnings of their keys
        self._counts: dict[CaseId, dict[int, int]] = {}
        hub.subscribe(CaseEnded, self._ended)
        hub.provide(LoadedJobs, self)

    def is_asked_by(self, live: LiveCase) -> bool:
        """Whether earlier results are looked for, for jobs of this case."""
        return _wants_results(live.document)

    def key_for(self, live: LiveCase, spec: JobSpec) -> str:
        """The key for the result of a new job of a case for which none are looked for; empty if its result is never
        used."""
        return "" if why_never(spec) or live.document.decision else self._new_key(live, spec)[1]

    def _new_key(self, live: LiveCase, spec: JobSpec) -> tuple[str, str]:
        """The key of what the job is made from, and of this one of the case's equal jobs."""
        base = result_key(spec)
        return base, numbered(base, self._count(live, base))

    async def look_up(self, live: LiveCase, serial: int, spec: JobSpec, *, reissued: bool = False) -> Lookup:
        """Look for a result for a job that is to be submitted; `reissued`: it may have been submitted already."""
        if why_never(spec) or live.document.decision:
            return Lookup(None, "", "")
        if reissued and (known := live.stored_keys.pop(serial, "")):
            return Lookup(None, "", known)  # it was submitted and counted
        base, key = self._new_key(live, spec)
        if reissued or not _wants_results(live.document):
            return Lookup(None, "", key)
        if spec.item in live.runs:
            await self._forget_runs(live, spec.item)
            return Lookup(None, "", key)
        if live.runs_again(serial):
            return Lookup(None, why_rerun(item_name(spec.item), live.document.again), key)
        if not spec.cache and can_be_undone(live.case, serial):
            return Lookup(None, UNDOABLE, key)
        outcome, reason = await self._find(live, spec, base, key)
        return Lookup(outcome, reason, key)

    async def forecast(
        self,
        flow: str,
        wanted: Sequence[WantedResult],
        cache: CachePolicy,
        *,
        who: str,
        project: str,
    ) -> list[ResultForecast]:
        """What would be found for jobs of a case that this user is to start; nothing is written."""
        document = CaseDocument(id=CaseId(""), flow=flow, digest="", owner=who, project=project, cache=cache)
        live = LiveCase(Case.blank(), document)
        found = []
        for each in wanted:
            outcome, reason = await self._forecast_one(live, each) if _wants_results(document) else (None, "")
            found.append(ResultForecast(outcome=outcome, reason=reason or why_to_run(each.spec, cache)))
        return found

    async def _forecast_one(self, live: LiveCase, wanted: WantedResult) -> tuple[Outcome | None, str]:
        if why_never(wanted.spec):
            return None, ""
        if wanted.undoable and not wanted.spec.cache:
            return None, UNDOABLE
        spec = live.owned(wanted.spec, wanted.spec.element)
        base = result_key(spec)
        return await self._find(live, spec, base, numbered(base, wanted.number), peek=True)

    def take_over(self, live: LiveCase, new: NewJob, outcome: Outcome) -> None:
        """Record the job as completed with an outcome that was made earlier; its note says why."""
        now = self._clock.now()
        job = job_lifecycle.create(new.id, new.case, new.spec, now=now)
        job.key = new.key
        for event in job_lifecycle.take_over(job, outcome, why=new.note, now=now):
            job_events.evolve(job, event)
        self._ledger.touch("job", new.id, job, last=True)
        live.move(int(new.id.rpartition("/")[2]), item_name(new.spec.item), "job", "cached")
        self._events.tell(now, "item", live.id, ItemId(new.spec.item), state="cached", message=new.note)

    async def jobs_loaded(self, live: LiveCase, jobs: Sequence[Job]) -> None:
        """These jobs of a case that was loaded count, and each that took a result of the earlier case has it."""
        counts = self._counts_of(live)
        for job in jobs:
            if job.key:
                short = _short(job.key)
                counts[short] = max(counts.get(short, 0), number_in(job.key))
                if (serial := serial_of(job.id)) in live.case.index.serials or serial in live.case.posted:
                    live.stored_keys[serial] = job.key
            if live.earlier is not None and job.outcome is not None and job.outcome.cached_from:
                live.earlier.take(job.spec.item, base_of(job.key) or result_key(job.spec))
        await self.index.restore(jobs, live.document.flow)

    def _count(self, live: LiveCase, base: str) -> int:
        """How many jobs of the tree of cases were made from the same, this one included."""
        counts = live.equal_jobs if live.equal_jobs is not None else self._counts_of(live)
        short = _short(base)
        number = counts[short] = counts.get(short, 0) + 1
        return number

    def _counts_of(self, live: LiveCase) -> dict[int, int]:
        if live.equal_jobs is None:
            live.equal_jobs = self._counts.setdefault(first_case_of(live.id), {})
        return live.equal_jobs

    def _ended(self, fact: CaseEnded) -> None:
        if first_case_of(fact.document.id) == fact.document.id:
            self._counts.pop(fact.document.id, None)
            self._ledger.write_deferred()

    async def _find(
        self, live: LiveCase, spec: JobSpec, base: str, key: str, *, peek: bool = False
    ) -> tuple[Outcome | None, str]:
        """`peek`: the index stays as it is, whatever is found."""
        missing = ""
        if live.earlier is not None and (earlier := live.earlier.take(spec.item, base)) is not None:
            assert earlier.outcome is not None
            missing = await self._missing_file(earlier.outcome)
            if not missing:
                return await self._taken(earlier, spec)
        asked = live.document.cache == "all"
        if asked or (live.document.cache == "declared" and not why_undeclared(spec)):
            found = await self.index.find(key, live.document.project, self._clock.now(), peek=peek)
            if found is not None:
                missing = await self._why_unusable(live, spec, found, asked=asked, peek=peek)
            if found is not None and not missing:
                if not peek:
                    self.index.note_use(found, self._clock.now())
                return await self._taken(found.job, spec)
            if not missing and live.earlier is None:
                missing = await self._changed_since(live, spec)
        elif live.earlier is None:
            return None, await self._why_passed_over(live, spec, key)
        reason = missing or (live.earlier.why_not(spec) if live.earlier is not None else "")
        return None, reason if not reason or reason.startswith(NEW) else f"{AGAIN}{reason}"

    async def _why_passed_over(self, live: LiveCase, spec: JobSpec, key: str) -> str:
        """Why a job runs whose result is there, if it is. One job of each name is looked for: the others of a loop were
        made in the same cases, and declare as much."""
        name = item_name(spec.item)
        if live.document.cache != "declared" or name in live.passed_over:
            return live.passed_over.get(name, "")
        live.passed_over[name] = ""
        found = await self.index.find(key, live.document.project, self._clock.now(), peek=True)
        if found is not None and first_case_of(found.job.case) != first_case_of(live.id):
            live.passed_over[name] = f"{PASSED_OVER}{why_undeclared(spec)}{IF_ASKED}"
        return live.passed_over[name]

    async def _taken(self, made: Job, spec: JobSpec) -> tuple[Outcome, str]:
        """The outcome of a job, for a new one, and the reason: which job made it, also if it was taken from the cache
        itself, and what could not be compared."""
        assert made.outcome is not None
        origin = made.outcome.cached_from or made.id
        if origin != made.id:
            stored = await self._store.get(JOB_KIND, origin)
            first = _decode_job(stored.body) if stored is not None else made
            made = first if first.spec.project == made.spec.project and first.outcome is not None else made
        outcome = made.outcome
        assert outcome is not None
        reason = f"cached: made by case {made.case} item {made.spec.item} on {moment(made.finished_at)}"
        if undeclared := why_undeclared(spec) or why_doubted(spec, outcome):
            reason += f"{ALTHOUGH}{undeclared}"
        return msgspec.structs.replace(outcome, cached_from=origin), reason

    async def _why_unusable(
        self, live: LiveCase, spec: JobSpec, found: IndexedResult, *, asked: bool, peek: bool
    ) -> str:
        """Why a result that was found is not used after all. One whose files are gone leaves the index."""
        outcome = found.job.outcome
        assert outcome is not None
        if first_case_of(found.job.case) == first_case_of(live.id):
            return "this case itself made the result"
        if spec.function != found.job.spec.function and await self._owner_of(found.job) != live.document.owner:
            return f"case {found.job.case} of another user made the result, from code that is not known to be the same"
        if not asked and not spec.cache and gives_nothing(outcome):
            return "it gives no outputs and no files, so what it does is done elsewhere"
        if not asked and (doubt := why_doubted(spec, outcome)):
            return f"the result of case {found.job.case} is not used without --cached: {doubt}"
        missing = await self._missing_file(outcome)
        if missing and not peek:
            await self.index.forget(found.key)
        return missing

    async def _owner_of(self, job: Job) -> str | None:
        """Who started the case of a job. What a function uses of its code is said by whoever deploys it, and believed
        for that user's own cases alone. A flow may name other owners of its jobs: that does not count here."""
        stored = await self._store.get(CASE_KIND, job.case)
        return _decode_case(stored.body).owner if stored is not None else None

    async def _missing_file(self, outcome: Outcome) -> str:
        for name, ref in stored_files(outcome):
            if ref.logical:
                if not await self._catalogue.has(ref):
                    return f"its file {name} is no longer in the catalogue"
            elif flaw := await self._file_store.stored_flaw(ref.sha256, ref.bytes):
                return f"its file {name} {flaw}"
        return ""

    async def _forget_runs(self, live: LiveCase, item: ItemId) -> None:
        """An item was restarted, so somebody does not want what its earlier runs made."""
        ids = [f"{live.id}/{serial}" for serial in live.runs[item].serials]
        await self._ledger.settled()
        for found in await self._store.get_many(JOB_KIND, ids):
            job = _decode_job(found.body)
            if job.key:
                await self.index.forget(job.key)

    async def _changed_since(self, live: LiveCase, spec: JobSpec) -> str:
        """What is other than in the nearest job of this name, in the last cases of the flow; empty if there is none."""
        name = item_name(spec.item)
        if name not in live.compared:
            live.compared[name] = await self._earlier_jobs(live, name)
        earlier = live.compared[name].nearest_to(spec)
        if earlier is None:
            return new_element(spec) if live.compared[name].jobs else ""
        place = f"case {earlier.case}" + (f" item {earlier.spec.item}" if earlier.spec.item != spec.item else "")
        if earlier.state is not JobState.COMPLETED:
            return f"it did not complete in {place}"
        assert earlier.outcome is not None
        if never := why_not_kept(earlier.outcome):
            return f"the result of {place} is not used: {never}"
        told = summary(earlier.spec, spec)
        return f"{told} since {place}" if told else f"the result of {place} is not in the cache"

    async def _earlier_jobs(self, live: LiveCase, name: str) -> NamedJobs:
        try:
            own = Sight(frozenset({live.document.project}))
            where = [FieldCondition("flow", live.document.flow), *in_sight(own)]
            cases = await self._store.search(
                CASE_KIND, where, order_by="started_at", descending=True, limit=CASES_COMPARED + 1
            )
            jobs: list[Job] = []
            whole = True
            for case in cases:
                if first_case_of(case.id) != first_case_of(live.id):
                    of_case = [FieldCondition("case", case.id), FieldCondition("name", name)]
                    found = await self._store.search(JOB_KIND, of_case, limit=JOBS_READ_MAX)
                    whole = whole and len(found) < JOBS_READ_MAX
                    jobs += [_decode_job(each.body) for each in found]
        except StoreUnavailable:
            return NamedJobs([])  # a sentence is not worth a failure
        return NamedJobs(jobs, whole=whole)


def _wants_results(document: CaseDocument) -> bool:
    return document.cache != "none" and (document.rerun_of is not None or bool(document.cache))


def _short(key: str) -> int:
    """A part of the key that takes little memory, and is as good as unique in one case."""
    return int(key[:15], 16)
