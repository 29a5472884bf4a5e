"""Which job made the result of a key, over all cases of the store.

A document under the key names the job, and has what results are searched by. Everything else about the result is in the
job's own document, and nowhere else: so a job that ends pays for few bytes, and whoever lists results reads the jobs.
The index is written soon after the job's end, and not later than the end of its case. It is only a hint: whoever
follows it reads the job, and uses the outcome only if that job completed and all its files are still there. So a crash
can at worst hide a result, and loading a case brings back what it hid."""

from collections.abc import Sequence
from typing import Final

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.views import ResultView
from mendflow.core.results.reuse_checks import stored_files, why_doubted, why_not_kept, why_undeclared
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.ledger import RESULT_KIND, Ledger
from mendflow.stores.contract import Delete, FieldCondition, Store, StoredDocument

USE_NOTED_EVERY_MS: Final = 60_000
SETTLING_MS: Final = 60_000
"""So long a result may be known before its job is: the two are written together, and not in every store at once."""

_PAGE: Final = 500
_AFTER_SLASH: Final = chr(ord("/") + 1)


class ResultDocument(msgspec.Struct, omit_defaults=True):
    """Where a result is. Its case is in the id of the job: a field for it would cost each job one more index entry."""

    job: JobId
    name: str
    flow: str = ""
    at: Instant = 0
    used_at: Instant = 0
    project: str = DEFAULT_PROJECT


class IndexedResult(msgspec.Struct, frozen=True):
    """A result that is there, with the job that made it."""

    key: str
    version: int
    document: ResultDocument
    job: Job

    def view(self) -> ResultView:
        job, document = self.job, self.document
        assert job.outcome is not None
        files = {ref.sha256: ref.bytes for _, ref in stored_files(job.outcome)}
        return ResultView(
            key=self.key,
            job=document.job,
            case=job.case,
            item=job.spec.item,
            name=document.name,
            flow=document.flow,
            made_at=document.at,
            used_at=document.used_at,
            files=len(files),
            bytes=sum(files.values()),
            declared=not (why_undeclared(job.spec) or why_doubted(job.spec, job.outcome)),
        )


_decode = msgspec.json.Decoder(ResultDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode


def is_result(job: Job) -> bool:
    """Whether the job itself made a result that may be used again."""
    outcome = job.outcome
    if not job.key or job.state is not JobState.COMPLETED or outcome is None:
        return False
    return not (outcome.cached_from or why_not_kept(outcome))


def conditions(case: str = "", flow: str = "", name: str = "") -> list[FieldCondition]:
    """Those of results of one case, one flow, or jobs of one name."""
    where = [FieldCondition(field, value) for field, value in (("flow", flow), ("name", name)) if value]
    if case:
        where += [FieldCondition("job", f"{case}/", "ge"), FieldCondition("job", f"{case}{_AFTER_SLASH}", "lt")]
    return where


class ResultIndex:
    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    def record(self, job: Job, flow: str) -> None:
        """A job has ended: its result can be found from now on, in place of an older one."""
        if is_result(job):
            document = ResultDocument(job.id, job.name, flow, job.finished_at, project=job.spec.project)
            self._ledger.touch_later(RESULT_KIND, job.key, document)

    async def restore(self, jobs: Sequence[Job], flow: str) -> None:
        """After a crash: record results of these jobs that are not in the index."""
        made = {job.key: job for job in jobs if is_result(job)}
        if not made:
            return
        known = {found.id for found in await self._store.get_many(RESULT_KIND, list(made))}
        for key in made.keys() - known:
            self.record(made[key], flow)

    async def find(self, key: str, project: str, now: Instant, *, peek: bool = False) -> IndexedResult | None:
        """The result of this key, if a job of this project made it and completed. An entry that leads nowhere is
        removed, unless this is only to `peek`."""
        await self._written(key)
        found = await self._store.get(RESULT_KIND, key)
        if found is None:
            return None
        document = _decode(found.body)
        if document.project != project:
            return None
        stored = await self._store.get(JOB_KIND, document.job)
        job = _decode_job(stored.body) if stored is not None else None
        if job is not None and is_result(job):
            return IndexedResult(key, found.version, document, job)
        if now - document.at > SETTLING_MS and not peek:
            await self.remove(found)
        return None

    def note_use(self, found: IndexedResult, now: Instant) -> None:
        document = found.document
        if now - document.used_at >= USE_NOTED_EVERY_MS:
            self._ledger.known(RESULT_KIND, found.key, found.version)
            noted = msgspec.structs.replace(document, used_at=now)
            self._ledger.touch(RESULT_KIND, found.key, noted, last=True, from_outside=True)

    async def forget(self, key: str) -> None:
        """The result of this key is not to be used again, whoever made it."""
        await self._written(key)
        found = await self._store.get(RESULT_KIND, key)
        if found is not None:
            await self.remove(found)

    async def _written(self, key: str = "") -> None:
        """Return when what was recorded about this key, or about all, is in the store."""
        if not key or self._ledger.busy(RESULT_KIND, key):
            self._ledger.write_deferred()
            await self._ledger.settled()

    async def remove(self, found: StoredDocument) -> None:
        """Unless it was replaced meanwhile."""
        await self._store.write([Delete(RESULT_KIND, found.id, found.version)])

    async def newest(self, where: Sequence[FieldCondition], limit: int) -> list[ResultView]:
        """The newest first. Those whose jobs are gone, with their cases, are left out."""
        await self._written()
        found: list[IndexedResult] = []
        after = None
        while len(found) < limit and (page := await self._search(where, min(limit, _PAGE), after)):
            after = page[-1]
            found += await self._with_jobs(page)
        return [each.view() for each in found[:limit]]

    async def _with_jobs(self, page: Sequence[StoredDocument]) -> list[IndexedResult]:
        entries = [(each, _decode(each.body)) for each in page]
        stored = await self._store.get_many(JOB_KIND, [document.job for _, document in entries])
        made = {job.id: job for job in (_decode_job(each.body) for each in stored) if is_result(job)}
        return [
            IndexedResult(each.id, each.version, document, made[document.job])
            for each, document in entries
            if document.job in made
        ]

    async def drop(self, where: Sequence[FieldCondition], unused_since: Instant) -> int:
        """Forget the results that match and were neither made nor used since then; how many."""
        await self._written()
        dropped, after = 0, None
        while page := await self._search(where, _PAGE, after):
            after = page[-1]
            for found in page:
                document = _decode(found.body)
                if max(document.at, document.used_at) < unused_since:
                    await self.remove(found)
                    dropped += 1
        return dropped

    async def _search(
        self, where: Sequence[FieldCondition], limit: int, after: StoredDocument | None = None
    ) -> Sequence[StoredDocument]:
        return await self._store.search(RESULT_KIND, where, order_by="at", descending=True, limit=limit, after=after)
