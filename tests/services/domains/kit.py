"""Two domains in this process, each a server on a store in memory with a pilot in the test's hands, and the lines
between them, which the test can cut."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from mendflow.core.model.domains import DomainAnswer, DomainRequest, DomainRights
from mendflow.core.model.errors import Forbidden, Unreachable
from mendflow.services.base.contracts import FileStore
from mendflow.services.domains.domain_lines import DomainLine
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import until
from tests.services.recovery.kit import World

HOME, AWAY = "home", "away"


class DirectLine:
    """A line to a server of this process. What is cut on the way there never arrives; what is cut on the way back
    arrives, and nobody hears of it."""

    def __init__(self, origin: str, host: Callable[[], Server], rights: DomainRights | None = None) -> None:
        self.origin = origin
        self._host = host
        self.rights = rights or DomainRights()
        self.cut_there = False
        self.cut_back = False
        self.disconnected = False
        self.requests: list[DomainRequest] = []
        self.moved_bytes = 0

    @property
    def _files(self) -> FileStore:
        return self._host().file_store

    def _pass(self, cut: bool) -> None:
        if cut:
            raise Unreachable("the line is cut")
        if self.disconnected:
            raise Forbidden("your domain is not connected")

    async def exchange(self, request: DomainRequest) -> DomainAnswer:
        self.requests.append(request)
        self._pass(self.cut_there)
        answer = await self._host().runtime.domains.hosted.exchange(self.origin, self.rights, request)
        self._pass(self.cut_there or self.cut_back)
        return answer

    async def missing_from(self, sha256: str) -> int | None:
        self._pass(self.cut_there or self.cut_back)
        has_shown = self._host().runtime.domains.hosted.has_shown(self.origin, sha256)
        if has_shown and await self._files.size(sha256) is not None:
            return None
        return await self._files.part_bytes(sha256, self.origin)

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0) -> None:
        self._pass(self.cut_there)
        if not self._host().runtime.domains.hosted.wants_file(self.origin, sha256):
            raise Forbidden("nobody has asked for this file")
        await self._files.keep_part(sha256, chunks, sha256=sha256, offset=offset, source=self.origin)
        self._host().runtime.domains.hosted.file_delivered(self.origin, sha256)
        self._pass(self.cut_back)

    async def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        if not self._host().runtime.domains.hosted.may_read(self.origin, sha256):
            raise Forbidden("this file belongs to no work of yours")
        async for chunk in self._files.read(sha256, offset):
            self._pass(self.cut_there or self.cut_back)
            self.moved_bytes += len(chunk)
            yield chunk


class Domains:
    """`home` sends, `away` hosts; both can do both."""

    def __init__(
        self, folder: Path, *, lease_ms: int = 30_000, stores: tuple[Store, Store] | None = None, **settings: object
    ) -> None:
        self.folder = folder
        self.settings = ServerSettings(lease_ms=lease_ms, files_roots=None, **settings)  # type: ignore[arg-type]  # own fields
        self.stores = dict(zip((HOME, AWAY), stores or (MemoryStore(), MemoryStore()), strict=True))
        self.lines: dict[str, dict[str, DirectLine]] = {HOME: {}, AWAY: {}}
        self.lines[HOME][AWAY] = DirectLine(HOME, lambda: self.away.server)
        self.lines[AWAY][HOME] = DirectLine(AWAY, lambda: self.home.server)
        self.home, self.away = self._world(HOME), self._world(AWAY)

    def _world(self, name: str) -> World:
        world = World(self.stores[name], self.folder / name, self.settings)
        file_store = FolderFileStore(self.folder / name / "files")
        file_store.open()
        lines: dict[str, DomainLine] = dict(self.lines[name])
        world.server = Server(
            store=self.stores[name],
            file_store=file_store,
            clock=world.server.clock,
            settings=msgspec.structs.replace(self.settings, domain=name),
            version="test",
            peer_lines=lambda: lines,
        )
        world.domain = type(world.domain)(world.server)
        world.pilot = type(world.pilot)(world.domain, f"p-{name}")
        return world

    @property
    def line(self) -> DirectLine:
        """From home to away."""
        return self.lines[HOME][AWAY]

    async def quiet(self) -> None:
        """Let everything happen that can happen without a pilot: what was to be said is said and heard."""
        await self.home.quiet()
        await self.away.quiet()
        await soon(self._is_told, "everything is told")
        await self.home.quiet()

    def _is_told(self) -> bool:
        sent, runs = self.home.runtime.domains.sent, self.away.runtime.domains.runs
        there = {work.document.key: work for work in runs.register.works.values()}
        open = {key: document for key in there if (document := sent.open_work(key)) is not None}
        is_known = open.keys() == there.keys() and len(open) == sent.works_at(AWAY)
        return is_known and all(
            work.told and work.status.state != "ended" and work.document.control == open[key].control
            for key, work in there.items()
        )

    async def __aenter__(self) -> "Domains":
        await self.home.server.open()
        await self.away.server.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.home.server.close()
        await self.away.server.close()


async def soon(check: Callable[[], bool], what: str = "") -> None:
    await until(check, what)
