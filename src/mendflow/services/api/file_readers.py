"""Who may read a stored file: whoever can read something that refers to it.

There is no index of that. Whoever asks names a case that it can read, and the documents of that case tell whether they
refer to the file: among the values of its cases, items and user tasks, or as a file of one of its jobs. A text that has
the digest in it is no reference. What was read of a case is remembered, so that its many files are found at the cost of
one look. The stored log of a job is not read as a file: what a job prints is masked when it is shown. A pilot names
nothing: what it holds is known. What somebody gave the server itself, it may have back."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable
from typing import Final

import msgspec

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.jobs import Job, JobSpec, JobState
from mendflow.core.model.principals import Principal, Sight
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.lazy import lazy_pattern
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND, first_case_of
from mendflow.services.base.loop_yielder import LoopYielder
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.flows import FLOW_KIND, FlowDocument
from mendflow.services.cases.live_case import ITEM_KIND, RUNS_KIND
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.services.domains.work_files import files_in_flow, files_in_job, files_made_in_outcome
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import Delete, FieldCondition, Put, StoredDocument, WriteConflict

REFERRING: Final = frozenset({CASE_KIND, JOB_KIND, ITEM_KIND, RUNS_KIND, TASK_KIND})

GIVEN_MAX: Final = 100_000
DIGESTS_MAX: Final = 1_000_000
"""So many digests of cases are remembered, and so many of jobs."""
JOBS_MAX: Final = 50_000
CASES_SEARCHED_MAX: Final = 2_000
"""In so many of the newest cases of somebody's projects a file is looked for that no case was named for."""
SEARCHES_AT_ONCE: Final = 1
"""So many such searches are made at once for each who asks."""
SPILLED_BYTES_MAX: Final = 256 << 20
PAGE: Final = 500
CASES_PAGE: Final = 100
"""Documents of cases are read so many at a time: they may be large."""
GIVEN_KIND: Final = "given-file"
"""Notes that somebody has sent a file. The name has the digest, so that the note does not keep the file."""
GIVEN_AGAIN_MS: Final = 3_600_000
"""A note that is not older stays as it is when the file is sent again."""
GIVEN_MS: Final = 86_400_000 + GIVEN_AGAIN_MS
BREATH_EVERY: Final = 100

_NAMED: Final = lazy_pattern(rb'"\$(?:file|spilled)"\s*:\s*"([0-9a-f]{64})"')
_SPILLED: Final = lazy_pattern(rb'"\$spilled"\s*:\s*"([0-9a-f]{64})"')
_decode_flow: Final = msgspec.json.Decoder(FlowDocument).decode
_decode_job: Final = msgspec.json.Decoder(Job).decode


class _Look(msgspec.Struct):
    """The digests that a tree of cases had when somebody looked. `version`: that of its first case, if it was over."""

    digests: frozenset[bytes]
    version: int


class _Given(msgspec.Struct):
    at: Instant


_decode_given: Final = msgspec.json.Decoder(_Given).decode


def _given_id(who: str, sha256: str) -> str:
    return f"{sha256}-{hashlib.sha256(who.encode()).hexdigest()[:32]}"


class FileReaders:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._given: OrderedDict[tuple[str, str], Instant] = OrderedDict()  # when it was noted
        self._next_removal: Instant = 0
        self._looks: OrderedDict[CaseId, _Look] = OrderedDict()
        self._remembered = 0
        self._looking = KeyedSemaphore(1)  # one look at a time for each tree
        self._searching = KeyedSemaphore(SEARCHES_AT_ONCE)
        self._of_jobs: OrderedDict[tuple[JobId, int], frozenset[bytes]] = OrderedDict()
        self._remembered_of_jobs = 0

    async def note_given(self, who: str, sha256: str) -> None:
        """Somebody has sent the content of this file. All servers on the store know it for a day at least, counted from
        the last time."""
        await self.note_all_given(who, [sha256])

    async def note_all_given(self, who: str, digests: Iterable[str]) -> None:
        """The same of several files at once."""
        now = self._server.clock.now()
        new = {
            _given_id(who, each): each
            for each in digests
            if now - self._given.get((who, each), now - GIVEN_AGAIN_MS - 1) > GIVEN_AGAIN_MS
        }
        for id, at in (await self._note(new, now)).items():
            self._remember_given(who, new[id], at)
        if new and now >= self._next_removal:
            self._next_removal = now + GIVEN_MS
            await self._remove_given(now - GIVEN_MS)

    async def _note(self, ids: Iterable[str], now: Instant) -> dict[str, Instant]:
        """Write these notes, but for those that another server has just written. Returns the times that they have."""
        store, left, noted = self._server.store, list(ids), dict[str, Instant]()
        while left:
            found = {each.id: each for each in await store.get_many(GIVEN_KIND, left)}
            times = {id: _decode_given(each.body).at for id, each in found.items()}
            noted |= {id: at for id, at in times.items() if now - at <= GIVEN_AGAIN_MS}
            left = [id for id in left if id not in noted]
            body = msgspec.json.encode(_Given(now))
            writes = [Put(GIVEN_KIND, id, body, found[id].version if id in found else 0) for id in left]
            answers = zip(left, await store.write(writes) if writes else (), strict=True)
            written = {id for id, done in answers if not isinstance(done, WriteConflict)}
            noted |= dict.fromkeys(written, now)
            left = [id for id in left if id not in written]
        return noted

    def _remember_given(self, who: str, sha256: str, at: Instant) -> None:
        self._given[who, sha256] = at
        self._given.move_to_end((who, sha256))
        if len(self._given) > GIVEN_MAX:
            self._given.popitem(last=False)

    async def _remove_given(self, before: Instant) -> None:
        """Forget what was noted earlier. A case that was given such a file refers to it by now."""
        found = [each async for each in self._server.store.scan(GIVEN_KIND)]
        old = [each for each in found if _decode_given(each.body).at < before]
        await self._server.store.write([Delete(GIVEN_KIND, each.id, each.version) for each in old])

    async def has_given(self, who: str, sha256: str) -> bool:
        if (who, sha256) not in self._given:
            if (found := await self._server.store.get(GIVEN_KIND, _given_id(who, sha256))) is None:
                return False
            self._remember_given(who, sha256, _decode_given(found.body).at)
        return True

    async def refers(self, case: str, sha256: str) -> bool:
        """Whether something in the tree of this case refers to the file."""
        story, digest = first_case_of(case), sha256.encode()
        if self._is_remembered(story, digest):
            return True
        async with self._looking.of(story):
            return self._is_remembered(story, digest) or digest in (await self._look(story)).digests

    def _is_remembered(self, story: CaseId, digest: bytes) -> bool:
        if (known := self._looks.get(story)) is None:
            return False
        self._looks.move_to_end(story)
        return digest in known.digests

    async def _look(self, story: CaseId) -> _Look:
        await self._server.runtime.ledger.settled()
        version, known = await self._final_version(story), self._looks.get(story)
        if known is not None and version and version == known.version:
            return known
        look = _Look(frozenset(await self._digests_of(story)), version)
        self._remember(story, look)
        return look

    async def _final_version(self, story: CaseId) -> int:
        """The version of the document of a case that does not live any more; 0 of others."""
        if story in self._server.runtime.manager.live:
            return 0
        found = await self._server.store.get(CASE_KIND, story)
        return found.version if found is not None else 0

    def _remember(self, story: CaseId, look: _Look) -> None:
        if (before := self._looks.pop(story, None)) is not None:
            self._remembered -= len(before.digests)
        self._looks[story] = look
        self._remembered += len(look.digests)
        while self._remembered > DIGESTS_MAX and len(self._looks) > 1:
            _, oldest = self._looks.popitem(last=False)
            self._remembered -= len(oldest.digests)

    async def _digests_of(self, story: CaseId) -> set[bytes]:
        found, spilled, passed = set[bytes](), set[bytes](), 0
        for kind in REFERRING.intersection(await self._server.store.kinds()):
            async for document in self._server.store.scan(kind, story):
                if first_case_of(document.id) == story:
                    found |= _referred(document)
                    spilled.update(_SPILLED.findall(document.body))
                passed += 1
                if passed % BREATH_EVERY == 0:
                    await asyncio.sleep(0)
        found |= await self._inside(spilled)
        made_up = await self._server.runtime.file_origins.foreign(story, {each.decode() for each in found})
        return {each for each in found if each.decode() not in made_up}

    async def _inside(self, spilled: Iterable[bytes]) -> set[bytes]:
        """What spilled values refer to."""
        return {each async for body in self._spilled_bodies(spilled) for each in _NAMED.findall(body)}

    async def _spilled_bodies(self, digests: Iterable[bytes]) -> AsyncIterator[bytes]:
        """The contents of values that are stored because of their size, and of those inside them, up to a bound."""
        agenda, files, passed = list(digests), self._server.file_store, 0
        seen = set(agenda)
        while agenda:
            digest = agenda.pop().decode()
            try:
                passed += await files.size(digest) or 0
                if passed > SPILLED_BYTES_MAX:
                    return
                body = b"".join([chunk async for chunk in files.read(digest)])
            except StoreUnavailable:
                raise
            except RequestError:
                continue  # it is gone, or damaged: it names nothing
            inner = set(_SPILLED.findall(body)) - seen
            seen |= inner
            agenda += inner
            yield body

    # Pilots

    async def is_held(self, pilot: Principal, sha256: str) -> bool:
        """Whether a job that a pilot with this token holds refers to the file. A job of another server on the store is
        known by its document alone, and counts if the token's projects are among those that the pilot works for."""
        meta, digest = self._server.runtime.meta, sha256.encode()
        for record in list(meta.pilots.values()):
            if record.owner not in ("", pilot.name):
                continue
            for id in list(record.held):
                job = meta.jobs.get(id)
                if job is None or (pilot.projects and job.spec.project not in pilot.projects):
                    continue
                if digest in await self._digests_of_job(job):
                    return True
        return self._server.membership.shared and await self._is_held_elsewhere(pilot.projects, digest)

    async def _digests_of_job(self, job: Job) -> frozenset[bytes]:
        key = (job.id, job.fence)
        if (known := self._of_jobs.get(key)) is None:
            known = await self._named_in(job.spec)
            self._remember_job(key, known)
        return known

    def _remember_job(self, key: tuple[JobId, int], digests: frozenset[bytes]) -> None:
        self._remembered_of_jobs += len(digests) - len(self._of_jobs.pop(key, ()))
        self._of_jobs[key] = digests
        while len(self._of_jobs) > JOBS_MAX or (self._remembered_of_jobs > DIGESTS_MAX and len(self._of_jobs) > 1):
            _, oldest = self._of_jobs.popitem(last=False)
            self._remembered_of_jobs -= len(oldest)

    async def _named_in(self, spec: JobSpec) -> frozenset[bytes]:
        spilled = _SPILLED.findall(msgspec.json.encode([spec.args, spec.kwargs])) if spec.args or spec.kwargs else ()
        return frozenset({each.sha256.encode() for each in files_in_job(spec)} | await self._inside(spilled))

    async def _is_held_elsewhere(self, projects: Collection[str], digest: bytes) -> bool:
        where = [FieldCondition("state", JobState.RUNNING.value)]
        where += in_sight(Sight(frozenset(projects)), "spec.project") if projects else []
        last = None
        while page := await self._server.store.search(JOB_KIND, where, limit=PAGE, after=last):
            for document in page:
                may_refer = digest in document.body or b'"$spilled"' in document.body
                if may_refer and digest in await self._digests_of_job(_decode_job(document.body)):
                    return True
            last = page[-1]
            if len(page) < PAGE:
                break
        return False

    # Without a case that was named

    async def unknown(self, sight: Sight, digests: Collection[str], who: str) -> set[str]:
        """Those that none of the newest cases of these projects was given, or gave. Such a search may read thousands of
        cases: of each who asks there is one at a time, and the others wait for their turn."""
        if not digests:
            return set()
        async with self._searching.of(who):
            return await self._unknown(sight, digests)

    async def _unknown(self, sight: Sight, digests: Iterable[str]) -> set[str]:
        left, last, passed, yielder = {each.encode() for each in digests}, None, 0, LoopYielder()
        where, origins = in_sight(sight, "project"), self._server.runtime.file_origins
        while left and passed < CASES_SEARCHED_MAX:
            page = await self._server.store.search(
                CASE_KIND, where, order_by="started_at", descending=True, limit=CASES_PAGE, after=last
            )
            for each in page:
                await yielder.pause()
                if found := {digest.decode() for digest in left & _referred(each)}:
                    came = found - await origins.foreign(CaseId(each.id), found)
                    left -= {digest.encode() for digest in came}
            if len(page) < CASES_PAGE:
                break
            last, passed = page[-1], passed + len(page)
        return {each.decode() for each in left}

    async def in_no_flow(self, sight: Sight, digests: Iterable[str]) -> set[str]:
        """Those that no flow of these projects names, as one does that a colleague has deployed."""
        left, last, where = {each.encode() for each in digests}, None, in_sight(sight, "project")
        while left and (page := await self._server.store.search(FLOW_KIND, where, limit=PAGE, after=last)):
            for each in page:
                left -= _named_by_flow(each, left)
            if len(page) < PAGE:
                break
            last = page[-1]
        return {each.decode() for each in left}


def _named_by_flow(document: StoredDocument, digests: set[bytes]) -> set[bytes]:
    """The files of a flow, if one of these may be among them: just those that its author was asked for when it was
    deployed. A map that only has the digest in it names no file."""
    if not any(each in document.body for each in digests):
        return set()
    return {each.sha256.encode() for each in files_in_flow(_decode_flow(document.body).flow)}


def _referred(document: StoredDocument) -> set[bytes]:
    """The files that a document refers to: by what its job was given and left, or by values."""
    if document.kind != JOB_KIND:
        return set(_NAMED.findall(document.body))
    job = _decode_job(document.body)
    return {each.sha256.encode() for each in (*files_in_job(job.spec), *files_made_in_outcome(job.outcome))}
