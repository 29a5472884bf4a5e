"""Domains in this process that reach each other without a network: each address leads to the gate of one."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from mendflow.core.model.domains import DomainAnswer, DomainRequest, InvitationAcceptance, InvitationAnswer
from mendflow.core.model.errors import Unreachable
from mendflow.services.api.domain import Domain
from mendflow.services.api.domain_gate import DomainGate
from mendflow.services.base.clock import SystemClock
from mendflow.services.domains.connected_domains import ConnectedDomains
from mendflow.services.domains.connections import Connections
from mendflow.services.domains.domain_lines import Token
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore


class LocalLines:
    """`cut`: requests to these addresses are lost; `mute`: answers from them are. While it is `idle`, domains can be
    connected, and exchange nothing. The answer to an acceptance is on its way until `answers_arrive` is set."""

    def __init__(self) -> None:
        self.gates: dict[str, DomainGate] = {}
        self.cut: set[str] = set()
        self.mute: set[str] = set()
        self.idle = False
        self.answers_arrive = asyncio.Event()
        self.answers_arrive.set()

    def line(self, urls: Sequence[str], token: Token, *, public_only: bool, told: Sequence[str] = ()) -> "LocalLine":
        return LocalLine(self, (*urls, *told), token)

    async def accept(self, urls: Sequence[str], invitation: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        answer = await self.reach(urls[0]).accept(invitation, acceptance)
        await self.answers_arrive.wait()
        self.demand_answer(urls[0])
        return answer

    def first(self, urls: Sequence[str]) -> str:
        """The first address where somebody is."""
        return next((url for url in urls if url in self.gates), urls[0])

    def reach(self, url: str) -> DomainGate:
        if url in self.cut or url not in self.gates:
            raise Unreachable(f"no answer from {url}")
        return self.gates[url]

    def demand_answer(self, url: str) -> None:
        if url in self.mute:
            raise Unreachable(f"no answer from {url}")


class LocalLine:
    def __init__(self, lines: LocalLines, urls: Sequence[str], token: Token) -> None:
        self._lines = lines
        self._urls = urls
        self._token = token

    @property
    def _url(self) -> str:
        return self._lines.first(self._urls)

    async def exchange(self, request: DomainRequest) -> DomainAnswer:
        if self._lines.idle:
            raise Unreachable("nothing is exchanged")
        gate = self._lines.reach(self._url)
        answer = await gate.exchange(await gate.admit(await self._sha256()), request)
        self._lines.demand_answer(self._url)
        return answer

    async def missing_from(self, sha256: str) -> int | None:
        gate = self._lines.reach(self._url)
        return await gate.missing_from(await gate.admit(await self._sha256()), sha256)

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0) -> None:
        gate = self._lines.reach(self._url)
        await gate.take_file(await gate.admit(await self._sha256()), sha256, chunks, offset)

    async def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        gate = self._lines.reach(self._url)
        await gate.file_size(await gate.admit(await self._sha256()), sha256)
        yield b"".join([piece async for piece in gate.file(sha256, offset)])

    async def _sha256(self) -> str:
        return hashlib.sha256((await self._token()).encode()).hexdigest()


class Neighbour:
    """A server, alone on its store, that is a domain of this name."""

    def __init__(self, lines: LocalLines, folder: Path, name: str, *, store: Store | None = None) -> None:
        files = FolderFileStore(folder / name / "files")
        files.open()
        self.url = f"http://{name}.example.org"
        self.store = store or MemoryStore()
        self.server = Server(
            store=self.store,
            file_store=files,
            clock=SystemClock(),
            settings=ServerSettings(files_roots=None, domain=name),
            version="test",
            lines=lines,
        )
        self.server.listens_at(self.url)
        self.domain = Domain(self.server)
        lines.gates[self.url] = DomainGate(self.server)

    async def restart(self) -> None:
        """As after a crash: new services over what the store holds."""
        self.server.on_broken(self.server.runtime, "the test says so")
        while self.server.health().status != "ok":
            await asyncio.sleep(0.01)

    @property
    def services(self) -> ConnectedDomains:
        return self.server.runtime.connected

    @property
    def connections(self) -> Connections:
        return self.services.connections
