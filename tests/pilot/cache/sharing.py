"""A server that passes on who shares with whom, and counts what it had to give out itself."""

import hashlib
from collections import Counter

import msgspec
from aiohttp import web

from mendflow.core.model.data import CacheUpdate, Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.core.model.sync import SyncAnswer, SyncRequest, servers_mark
from tests.pilot.conftest import Server


class SharingServer(Server):
    """All its pilots may use each other's caches."""

    def __init__(self) -> None:
        super().__init__()
        self.news: dict[PilotId, CacheUpdate] = {}
        self.hosts: dict[PilotId, str] = {}
        self.held: dict[str, dict[str, int]] = {}
        self.given: Counter[str] = Counter()

    async def _get(self, request: web.Request) -> web.Response:
        self.given[request.match_info["sha"]] += 1
        return await super()._get(request)

    def _answer(self, request: SyncRequest, again: bool = False) -> SyncAnswer:
        self._hear(request)
        others, mark = self._others(request.pilot)
        known = self.news.get(request.pilot)
        return msgspec.structs.replace(
            super()._answer(request, again),
            cache_seen=known.version if known is not None else 0,
            neighbours=None if mark == request.neighbours else others,
            neighbours_mark=mark,
        )

    def _hear(self, request: SyncRequest) -> None:
        news, known = request.cache, self.news.get(request.pilot)
        self.hosts[request.pilot] = request.host
        if news is None or (news.base and (known is None or known.version != news.base)):
            return
        files = self.held.setdefault(request.pilot, {})
        if not news.base:
            files.clear()
        for digest in news.gone:
            files.pop(digest, None)  # it may have come and gone since the last news
        files.update((file.sha256, file.bytes) for file in news.added)
        self.news[request.pilot] = news

    def holders(self, content: bytes) -> list[str]:
        digest = hashlib.sha256(content).hexdigest()
        return [pilot for pilot, files in self.held.items() if digest in files]

    def know_each_other(self, count: int) -> bool:
        """Whether so many pilots have been told of all the others."""
        latest = {request.pilot: request.neighbours for request in self.ledger.requests}
        return len(self.news) == count and all(latest[pilot] == self._others(pilot)[1] for pilot in self.news)

    def _others(self, pilot: str) -> tuple[list[Neighbour], int]:
        others = [
            Neighbour(other, self.hosts[other], news.folder, news.address, news.key)
            for other, news in sorted(self.news.items())
            if other != pilot
        ]
        return others, servers_mark([repr(other) for other in others])
