"""Fetches the trees of an archive that live on other servers, before the first byte of the archive is sent.

So a server that does not answer is reported in time, and each tree is known to be complete before any of it is sent on.
A tree waits in a temporary file until its turn; memory holds only a few of its records at a time. If a server dies
meanwhile, its trees are fetched from the server that takes them over."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from mendflow.core.model.errors import Unreachable
from mendflow.core.model.ids import CaseId
from mendflow.services.api.archive.records import AnyRecord, BadArchive, HeadRecord, TreeRecord, Unpacker
from mendflow.services.base.cluster import Peers, PeerUnavailable, ServerDocument
from mendflow.services.base.contracts import Clock

PATIENCE_MS: Final = 15_000
AGAIN_MS: Final = 500
AT_ONCE: Final = 20


class TreeLocator(Protocol):
    """Finds the servers that trees live on."""

    async def home(self, root: CaseId) -> ServerDocument | None:
        """The other server to ask for the tree; None if it lives here, or is over and read from the store."""
        ...


class RemoteTrees:
    """`folder` is an empty folder that the caller removes. `left_out` are the trees whose servers could not be
    asked."""

    def __init__(self, homes: TreeLocator, peers: Peers, clock: Clock, folder: Path) -> None:
        self._homes = homes
        self._peers = peers
        self._clock = clock
        self._folder = folder
        self._files: dict[CaseId, Path] = {}
        self._unreachable_servers: set[str] = set()
        self.left_out: list[CaseId] = []

    async def gather(self, roots: Sequence[CaseId], *, leave_out: bool) -> None:
        """Fetch the trees that live on other servers. If a server does not answer for long, raise an error that names
        it, or leave its trees out."""
        for root in roots:
            try:
                await self.is_fetched(root)
            except Unreachable:
                if not leave_out:
                    raise
                self.left_out.append(root)

    async def is_fetched(self, root: CaseId) -> bool:
        """Whether the tree was fetched from another server, now or before."""
        give_up_at = self._clock.now() + PATIENCE_MS
        while root not in self._files:
            server = await self._homes.home(root)
            if server is None:
                return False
            try:
                self._files[root] = await self._fetch(server, root)
            except PeerUnavailable as away:
                if server.id in self._unreachable_servers or self._clock.now() >= give_up_at:
                    self._unreachable_servers.add(server.id)
                    raise _unreachable(root, server, away) from away
                await self._clock.sleep(AGAIN_MS)
        return True

    async def _fetch(self, server: ServerDocument, root: CaseId) -> Path:
        path = self._folder / str(len(self._files))
        with path.open("wb") as out:
            async for chunk in self._peers.archive(server, root):
                await asyncio.to_thread(out.write, chunk)
        try:
            roots = await asyncio.to_thread(_trees_in, path)
        except BadArchive as error:
            raise PeerUnavailable(f"what came of server {server.id} is not whole: {error.message}") from error
        if roots != [root]:
            raise PeerUnavailable(f"server {server.id} sent something else than case {root}")
        return path

    async def records(self, root: CaseId) -> AsyncIterator[AnyRecord]:
        """The records of a tree that was fetched."""
        with self._files[root].open("rb") as source:
            records = (record for record in Unpacker(source).records() if not isinstance(record, HeadRecord))
            while some := await asyncio.to_thread(lambda: list(islice(records, AT_ONCE))):
                for record in some:
                    yield record


def _trees_in(path: Path) -> list[CaseId]:
    """The trees in an archive, which is read to its end so that its digest is checked."""
    with path.open("rb") as source:
        return [record.root for record in Unpacker(source).records() if isinstance(record, TreeRecord)]


def _unreachable(root: CaseId, server: ServerDocument, away: PeerUnavailable) -> Unreachable:
    return Unreachable(
        f"case {root} lives on server {server.id} at {server.url or 'no known address'}, which cannot be asked for it"
        f" ({away}); look after that server, or leave out what cannot be had: --leave-out-unreachable",
        server=server.id,
        url=server.url,
    )
