"""Answers requests of other domains. Each names its connection by its token; what it may do is what that connection
has rights to, and nothing else."""

from collections.abc import AsyncIterator
from typing import Final

from mendflow.core.model.domains import DomainAnswer, DomainRequest, InvitationAcceptance, InvitationAnswer
from mendflow.core.model.errors import Forbidden, NotFound, TooLarge
from mendflow.services.base.ledger import Ledger
from mendflow.services.domains.connected_domains import ConnectedDomains
from mendflow.services.domains.connections import Connection
from mendflow.services.runtime.server import Server

NO_SUCH_FILE: Final = "no work of this domain waits for a file with this digest, or has made one"


class DomainGate:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def _domains(self) -> ConnectedDomains:
        return self._server.runtime.connected

    async def _settled(self) -> None:
        ledger: Ledger = self._server.runtime.ledger
        await ledger.settled()

    async def accept(self, shown: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        answer = await self._domains.accept(shown, acceptance)
        await self._settled()
        return answer

    async def admit(self, token_sha256: str) -> Connection:
        return await self._domains.connections.authenticate(token_sha256)

    async def exchange(self, connection: Connection, request: DomainRequest) -> DomainAnswer:
        answer = await self._domains.answer(connection, request)
        await self._settled()
        return answer

    async def file_size(self, connection: Connection, sha256: str) -> int:
        """The size of a file that this domain may read."""
        host = self._domains.host
        if host is None or not host.may_read(connection.name, sha256):
            raise NotFound(NO_SUCH_FILE)
        size = await self._server.file_store.size(sha256)
        if size is None:
            raise NotFound(NO_SUCH_FILE)
        return size

    def file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        return self._server.file_store.read(sha256, offset)

    async def missing_from(self, connection: Connection, sha256: str) -> int | None:
        """From which byte on this domain has to bring a file; None if it need not."""
        host, files = self._domains.host, self._server.file_store
        if host is None:
            return 0
        if host.has_shown(connection.name, sha256) and await files.size(sha256) is not None:
            return None
        return await files.part_bytes(sha256, connection.name) if host.wants_file(connection.name, sha256) else 0

    async def take_file(
        self, connection: Connection, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0
    ) -> None:
        """Take a file that this domain was asked for, from this byte on."""
        host = self._domains.host
        if host is None or not host.wants_file(connection.name, sha256):
            raise Forbidden(NO_SUCH_FILE)
        most = min(host.file_bytes_max(connection.name, sha256), connection.rights.bytes_max)
        bounded = _bounded(chunks, most, offset)
        await self._server.file_store.keep_part(sha256, bounded, sha256=sha256, offset=offset, source=connection.name)
        host.file_delivered(connection.name, sha256)


async def _bounded(chunks: AsyncIterator[bytes], most: int, offset: int) -> AsyncIterator[bytes]:
    total = offset
    async for chunk in chunks:
        total += len(chunk)
        if total > most:
            raise TooLarge(
                f"the file is larger than the {most} bytes that were announced, or that this domain may have here",
                bytes_max=most,
            )
        yield chunk
