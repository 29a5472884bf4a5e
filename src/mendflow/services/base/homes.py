"""Homes: which server decides about a tree of cases. A document for each tree, written before its first case begins and
deleted after its last has ended.

What keeps a tree here is held by name: each live case, each unfinished decision. The first hold writes the home, the
release of the last one deletes it. A tree that is being taken over belongs to nobody until all of it is in memory:
requests about it wait that long."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId, JobId
from mendflow.services.base.cluster import CASE_KIND, ENGINE_KIND, HOME_KIND, LIVE_STATUSES, HomeDocument, root_of
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.stores.contract import Put, Store, StoredDocument, WriteDone

CACHED_MAX: Final = 50_000
CHUNK: Final = 500
LAYOUT_KIND: Final = "layout"
"""A document of this kind says that a migration of the whole store, given by its name, is done."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(HomeDocument).decode


class _Case(msgspec.Struct):
    """The fields of a case that say whether it is over."""

    id: CaseId
    status: str = ""
    posted: bool = False


_decode_case = msgspec.json.Decoder(_Case).decode


NOTHING_INHERITED: Final[Mapping[JobId, int]] = {}


class CaseTree(NamedTuple):
    """A tree that has its home here and is not in memory yet. `moved`: another server may still believe that it owns
    the tree, and has to be fenced out. `was_ours`: it was ours before, and our own last write may still be on its way:
    that has to be fenced out as well. `promised_ms`: for how long pilots may count on their attempts of it; None: a
    whole lease. `begins`: its home was made for a new case, and nobody has checked yet whether that began.
    `inherited_ms`: the same as `promised_ms` for jobs whose pilots the last server never promised anything itself."""

    root: CaseId
    moved: bool = False
    was_ours: bool = False
    promised_ms: int | None = None
    begins: bool = False
    inherited_ms: Mapping[JobId, int] = NOTHING_INHERITED


class _Loading:
    """A tree that is being loaded, and the task that loads it."""

    def __init__(self) -> None:
        self.task = asyncio.current_task()
        self.loaded = asyncio.Event()


class HomeRegistry:
    def __init__(self, store: Store, ledger: Ledger, membership: OwnMembership) -> None:
        self._store = store
        self._ledger = ledger
        self._membership = membership
        self._holds: dict[CaseId, set[str]] = {}
        self._loading: dict[CaseId, _Loading] = {}
        self._claiming: set[CaseId] = set()  # trees whose homes we are about to write: no case begins there meanwhile
        self._known_homes: dict[CaseId, str] = {}

    @property
    def server(self) -> str:
        """This server."""
        return self._membership.id

    # Asking

    def mine(self, case: CaseId) -> bool:
        root = root_of(case)
        return root in self._holds and root not in self._loading

    def knows(self, root: CaseId) -> bool:
        """Whether the tree is here, or is being loaded."""
        return root in self._holds

    def is_loading(self, id: str) -> bool:
        """Whether the tree that this belongs to is being loaded."""
        return bool(self._loading) and root_of(id) in self._loading

    async def home_of(self, case: CaseId, *, afresh: bool = False) -> str:
        root = root_of(case)
        if root in self._holds:
            return self.server
        known = self._known_homes.get(root, "")
        if known and not afresh and self._membership.find(known) is not None:
            return known
        found = await self._store.get(HOME_KIND, root)
        if found is None:
            self._known_homes.pop(root, None)
            return ""
        if len(self._known_homes) >= CACHED_MAX:
            self._known_homes.clear()
        self._known_homes[root] = server = _decode(found.body).server
        return server

    async def has_forgotten(self, case: CaseId) -> bool:
        """Whether a live case has its home here according to the store, although it is not in memory."""
        if root_of(case) in self._holds:
            return False
        return not self._membership.shared or await self.home_of(case, afresh=True) == self.server

    async def is_still_ours(self, root: CaseId) -> bool:
        """Whether the home is as we wrote it when we took the tree: no other server has taken it since."""
        found = await self._store.get(HOME_KIND, root)
        return found is not None and found.version == self._ledger.version(HOME_KIND, root)

    @property
    def loads_some(self) -> bool:
        """Whether any tree is being loaded: else nobody has to wait for one."""
        return bool(self._loading)

    async def wait_until_loaded(self, case: CaseId) -> None:
        """Wait while the case's tree is being loaded by another task."""
        if (loading := self._loading_by_another(case)) is not None:
            await loading.loaded.wait()

    def is_loading_by_another(self, case: CaseId) -> bool:
        """Whether another task loads the case's tree, so that `wait_until_loaded` waits for it."""
        return self._loading_by_another(case) is not None

    def _loading_by_another(self, case: CaseId) -> _Loading | None:
        loading = self._loading.get(root_of(case)) if self._loading else None
        return loading if loading is not None and loading.task is not asyncio.current_task() else None

    # Holding

    def hold(self, id: str, by: str, *, begins: bool = False) -> None:
        """Keep the tree of `id` here because of `by`."""
        root = root_of(id)
        holds = self._holds.get(root)
        if holds is None:
            holds = self._holds[root] = set()
            self._ledger.touch(HOME_KIND, root, self._document(root, begins=begins))
        holds.add(by)

    async def claim(self, id: str, by: str, *, begins: bool = False) -> bool:
        """Hold a tree that does not exist yet. If several servers begin the same one, one succeeds; the home is on disk
        then. `begins`: a new case is to begin there, so if this server dies somebody has to check whether it did."""
        root = root_of(id)
        if root in self._holds or root in self._claiming:
            return False
        if not self._membership.shared:
            self.hold(root, by, begins=begins)
            return True
        self._holds[root] = {by}
        won = False
        try:
            won = await self._make(root, begins)
        finally:
            if not won:
                del self._holds[root]
        return won

    async def _make(self, root: CaseId, begins: bool) -> bool:
        wanted = self._document(root, begins=begins)
        version = await self._ledger.put_now(HOME_KIND, root, wanted, 0)
        if version is None and not self._ledger.busy(HOME_KIND, root):
            found = await self._store.get(HOME_KIND, root)
            if found is not None and _decode(found.body) == wanted:
                # We wrote it before, did not get the answer, and began nothing.
                version = await self._ledger.put_now(HOME_KIND, root, wanted, found.version)
        if version is not None:
            self._note_claimed(root, version)
        return version is not None

    def release(self, id: str, by: str) -> None:
        root = root_of(id)
        holds = self._holds.get(root)
        if holds is not None:
            holds.discard(by)
            if not holds and root not in self._loading:
                self._drop(root)

    def _drop(self, root: CaseId) -> None:
        del self._holds[root]
        self._ledger.drop(HOME_KIND, root)

    # Loading

    def begin_loading(self, trees: Iterable[CaseTree]) -> None:
        """The current task loads these trees from now on."""
        for tree in trees:
            self._holds[tree.root] = set()
            self._loading[tree.root] = _Loading()

    def end_loading(self, trees: Iterable[CaseTree]) -> None:
        """The trees are in memory, and their former servers are fenced out. A tree in which nothing is live is over."""
        for tree in trees:
            self._loading.pop(tree.root).loaded.set()
            if not self._holds[tree.root]:
                self._drop(tree.root)
            elif tree.moved:
                self._ledger.touch(HOME_KIND, tree.root, self._document(tree.root))

    async def claim_own(self) -> list[CaseTree]:
        """At the start: claim again the trees whose home is this server, and those of live cases without a home,
        written before homes existed. A server that is alone on its store claims all."""
        shared = self._membership.shared
        found = [document async for document in self._store.scan(HOME_KIND)]
        taken = await self.take([each for each in found if not shared or _decode(each.body).server == self.server])
        if await self._store.get(LAYOUT_KIND, HOME_KIND) is None:
            known = {each.id for each in found}
            roots = [root for root in await self._roots_without_home() if root not in known]
            taken += await self._claim([(0, self._document(root)) for root in roots])
            await self._store.write([Put(LAYOUT_KIND, HOME_KIND, b"{}", 0)])
        left_ms = self._membership.earlier_promises_ms()
        return [tree._replace(was_ours=shared, promised_ms=left_ms) for tree in taken]

    async def take(self, found: Sequence[StoredDocument]) -> list[CaseTree]:
        """Make these homes ours; returns those where no other server was faster, and no case is being begun here."""
        homes = [(document.version, _decode(document.body)) for document in found]
        homes = [(version, home) for version, home in homes if home.root not in self._holds]
        roots = {home.root for _, home in homes}
        self._claiming |= roots
        try:
            return await self._claim_documents(homes)
        finally:
            self._claiming -= roots

    async def _claim_documents(self, homes: Sequence[tuple[int, HomeDocument]]) -> list[CaseTree]:
        wanted: list[tuple[int, HomeDocument]] = []
        taken: list[CaseTree] = []
        for version, home in homes:
            moved_from = home.moved_from if home.server == self.server else home.server
            ours = self._document(home.root, moved_from if self._membership.shared else "", begins=home.begins)
            if home == ours and not home.moved_from:
                self._note_claimed(home.root, version)
                taken.append(CaseTree(home.root, begins=home.begins))
            else:
                wanted.append((version, ours))
        return taken + await self._claim(wanted)

    async def _claim(self, wanted: Sequence[tuple[int, HomeDocument]]) -> list[CaseTree]:
        taken: list[CaseTree] = []
        for start in range(0, len(wanted), CHUNK):
            chunk = wanted[start : start + CHUNK]
            writes = [Put(HOME_KIND, home.root, _encode(home), version) for version, home in chunk]
            for (_, home), result in zip(chunk, await self._store.write(writes), strict=True):
                if isinstance(result, WriteDone):
                    self._note_claimed(home.root, result.version)
                    taken.append(CaseTree(home.root, moved=bool(home.moved_from), begins=home.begins))
        return taken

    def _note_claimed(self, root: CaseId, version: int) -> None:
        self._ledger.known(HOME_KIND, root, version)
        self._known_homes.pop(root, None)

    async def _roots_without_home(self) -> list[CaseId]:
        """The trees of all live cases, and the engines of other systems, that were written before homes existed.
        Searched once for each store."""
        engines = [CaseId(found.id) async for found in self._store.scan(ENGINE_KIND)]
        cases = [_decode_case(found.body) async for found in self._store.scan(CASE_KIND)]
        live = [root_of(case.id) for case in cases if case.status in LIVE_STATUSES or case.posted]
        return list(dict.fromkeys([*engines, *live]))

    def _document(self, root: CaseId, moved_from: str = "", *, begins: bool = False) -> HomeDocument:
        return HomeDocument(
            root=root,
            server=self.server,
            incarnation=self._membership.incarnation,
            moved_from=moved_from,
            begins=begins,
        )
