"""What refers to what: the files and cases that documents and journals name.

A file is named by its digest, and a digest counts wherever it stands: in whatever document, of whatever kind, in a
journal's entry, in a value that was spilled to a file. So a kind of document that nobody thought of here keeps its
files, and a mistake keeps too much. Cases are named in many places where nothing depends on them, as in the history of
a schedule; these kinds are listed, and every other kind keeps the cases that it names."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from typing import Final

import msgspec

from mendflow.core.model.audit import AUDIT_KINDS
from mendflow.core.model.errors import NOT_STORED, Conflict, RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.retention.marking import Referrers
from mendflow.lazy import lazy_pattern
from mendflow.services.base.alerts import ALERT_KIND
from mendflow.services.base.cluster import HOME_KIND, JOB_KIND, SERVER_KIND, first_case_of
from mendflow.services.base.contracts import FileStore
from mendflow.services.base.ledger import RESULT_KIND
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND
from mendflow.services.cases.live_case import SNAPSHOT_KIND, journal_of
from mendflow.services.data.sets.store import SET_KIND
from mendflow.services.observe.notifications.notifier import PENDING_KIND
from mendflow.services.observe.runtimes import RUNTIME_KIND
from mendflow.services.retention.case_census import CaseGroup
from mendflow.services.retention.pruned_cases import PRUNED_KIND, RUN_KIND
from mendflow.services.retention.tree_kinds import TREE_KINDS
from mendflow.services.schedules.store import SCHEDULE_KIND
from mendflow.stores.contract import Store, StoredDocument

STORED_FILE_KIND: Final = "stored-file"
IMPORTED_KIND: Final = "imported"
OWN_KINDS: Final = (*TREE_KINDS, SNAPSHOT_KIND)
"""Documents of these kinds belong to the group that they are named after."""
NOT_REFERRING: Final = frozenset({PRUNED_KIND, RUN_KIND, STORED_FILE_KIND, RESULT_KIND, FLOW_FILE_KIND}) | AUDIT_KINDS
CASES_ONLY_TOLD: Final = frozenset(
    {ALERT_KIND, PENDING_KIND, SCHEDULE_KIND, SET_KIND, RUNTIME_KIND, HOME_KIND, SERVER_KIND, IMPORTED_KIND, "size"}
)
"""Documents of these kinds name cases for people to see; nothing depends on them."""
BREATH_EVERY: Final = 200
JOURNAL_PAGE: Final = 10_000

_DIGEST: Final = lazy_pattern(rb"[0-9a-f]{64}")
_SPILLED: Final = lazy_pattern(rb'"\$spilled"\s*:\s*"([0-9a-f]{64})"')
_CACHED_FROM: Final = lazy_pattern(rb'"cached_from"\s*:\s*"([^"\\]+)"')
_TEXTS: Final = lazy_pattern(rb'"([A-Za-z_][^"\\]{0,300})"')


class CaseGroupContents(msgspec.Struct):
    """What belongs to a group: its documents at their versions, the files and groups that they name, and how many
    bytes all but the files take."""

    documents: list[tuple[str, str, int]] = []
    results: list[str] = []  # the keys under which the cache finds results of its jobs
    files: set[str] = set()
    spilled: set[str] = set()
    groups: set[CaseId] = set()
    text_bytes: int = 0
    damaged: set[str] = set()  # spilled values that cannot be read: nobody knows which files they name

    def add(self, body: bytes) -> None:
        self.text_bytes += len(body)
        self.files.update(each.decode() for each in _DIGEST.findall(body))
        self.spilled.update(each.decode() for each in _SPILLED.findall(body))

    @property
    def referrers(self) -> Referrers:
        return Referrers(cases=self.groups, files=self.files)


class ReferenceReader:
    def __init__(self, store: Store, file_store: FileStore) -> None:
        self._store = store
        self._file_store = file_store

    async def contents(self, groups: Mapping[CaseId, CaseGroup]) -> dict[CaseId, CaseGroupContents]:
        """What belongs to each of these groups, which are over."""
        found = {id: CaseGroupContents() for id in groups}
        for kind in set(OWN_KINDS).intersection(await self._store.kinds()):
            async for document in self._documents(kind):
                if (own := found.get(first_case_of(document.id))) is not None:
                    own.documents.append((kind, document.id, document.version))
                    own.add(document.body)
                    if kind == JOB_KIND:
                        own.groups |= _cached_from(document.body)
                        own.results += filter(None, [_decode_key(document.body).key])
        for id, group in groups.items():
            for case in group.cases:
                async for entry in self._journal(case):
                    found[id].add(entry)
            found[id].groups.discard(id)
            async for body in self._spilled_bodies(set(found[id].spilled), found[id].damaged):
                found[id].files.update(each.decode() for each in _DIGEST.findall(body))
        return found

    async def kept_references(
        self, groups: Mapping[CaseId, CaseGroup], going: Collection[CaseId], files: Collection[str]
    ) -> tuple[dict[CaseId, str], set[str]]:
        """What everything but the groups that go refers to: which of those groups, each with what does; and which of
        these files. Raises Conflict if a value that stays is damaged, so that nobody knows which files it names."""
        names = {digest.encode() for digest in files}
        cases: dict[CaseId, str] = {}
        wanted: set[bytes] = set()
        spilled: set[str] = set()
        for group in groups.values():
            if group.id not in going:
                cases.update((each, f"case {group.id}, which runs it again") for each in group.rerun_of)
        async for body in self._kept_bodies(going, cases):
            if names:
                wanted |= names.intersection(_DIGEST.findall(body))
                spilled.update(each.decode() for each in _SPILLED.findall(body))
        if names:
            for group in groups.values():
                for case in group.cases if group.id not in going else ():
                    async for entry in self._journal(case):
                        wanted |= names.intersection(_DIGEST.findall(entry))
                        spilled.update(each.decode() for each in _SPILLED.findall(entry))
        damaged: set[str] = set()
        async for body in self._spilled_bodies(spilled, damaged):
            wanted |= names.intersection(_DIGEST.findall(body))
        await self.demand_whole(damaged)
        return cases, {each.decode() for each in wanted}

    async def _kept_bodies(self, going: Collection[CaseId], cases: dict[CaseId, str]) -> AsyncIterator[bytes]:
        """Every document that stays; the groups that it keeps are added to `cases` on the way."""
        for kind in await self._store.kinds():
            if kind in NOT_REFERRING:
                continue
            own = kind in OWN_KINDS
            async for document in self._documents(kind):
                if own and first_case_of(document.id) in going:
                    continue
                if kind == ALERT_KIND and _Alert.of(document.body) in going:
                    continue
                named = _cached_from(document.body) if kind == JOB_KIND else set()
                if not own and kind not in CASES_ONLY_TOLD:
                    named = _named_groups(document.body)
                for group in named.intersection(going):
                    cases.setdefault(group, f"{kind} {document.id}")
                yield document.body

    async def remaining_contents(self, group: CaseId) -> CaseGroupContents:
        """What is still there of a group whose removal was cut short."""
        remaining = CaseGroupContents()
        for kind in set(OWN_KINDS).intersection(await self._store.kinds()):
            async for document in self._store.scan(kind, group):
                if first_case_of(document.id) == group:
                    remaining.documents.append((kind, document.id, document.version))
                    remaining.results += filter(None, [_decode_key(document.body).key] if kind == JOB_KIND else [])
        return remaining

    async def _documents(self, kind: str) -> AsyncIterator[StoredDocument]:
        passed = 0
        async for document in self._store.scan(kind):
            yield document
            passed += 1
            if passed % BREATH_EVERY == 0:
                await asyncio.sleep(0)

    async def _journal(self, case: CaseId) -> AsyncIterator[bytes]:
        position = 0
        while page := await self._store.read(journal_of(case), position, JOURNAL_PAGE):
            for entry in page:
                yield entry
            position += len(page)
            if len(page) < JOURNAL_PAGE:
                return

    async def demand_whole(self, damaged: Collection[str]) -> None:
        """Files that only a damaged value names would be taken for files that nobody refers to."""
        for digest in damaged:
            flaw = await self._file_store.stored_flaw(digest) or "was damaged a moment ago"
            raise Conflict(
                f"the value {digest}, which something that stays refers to, {flaw}: nobody knows which files it names,"
                " so nothing goes; store it again, or prune what refers to it"
            )

    async def _spilled_bodies(self, digests: Iterable[str], damaged: set[str]) -> AsyncIterator[bytes]:
        """The contents of spilled values, and of those inside them. One that is gone names nothing; one that is damaged
        is added to `damaged`."""
        seen, agenda = set(digests), list(digests)
        while agenda:
            digest = agenda.pop()
            try:
                body = b"".join([chunk async for chunk in self._file_store.read(digest)])
            except StoreUnavailable:
                raise
            except RequestError:
                if await self._file_store.stored_flaw(digest) != NOT_STORED:
                    damaged.add(digest)
                continue
            inner = {each.decode() for each in _SPILLED.findall(body)} - seen
            seen |= inner
            agenda += inner
            yield body


class _Alert(msgspec.Struct):
    case: CaseId = CaseId("")

    @classmethod
    def of(cls, body: bytes) -> CaseId:
        return first_case_of(_decode_alert(body).case)


class _Key(msgspec.Struct):
    key: str = ""


_decode_key = msgspec.json.Decoder(_Key).decode
_decode_alert = msgspec.json.Decoder(_Alert).decode


def _cached_from(body: bytes) -> set[CaseId]:
    """The groups whose results a job has taken."""
    return {first_case_of(each.decode()) for each in _CACHED_FROM.findall(body)}


def _named_groups(body: bytes) -> set[CaseId]:
    """The groups that texts in a document may be names of."""
    return {first_case_of(each.decode(errors="replace")) for each in _TEXTS.findall(body)}
