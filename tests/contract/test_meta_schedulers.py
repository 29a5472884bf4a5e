"""The contract of meta-schedulers, on our own queue, the proxy before it, and another domain."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.services.base.contracts import FileStore, MetaScheduler
from tests.contract.meta_schedulers import CommandPilot, MetaSchedulerContract, Yard
from tests.services.domains.kit import AWAY, Domains
from tests.services.recovery.kit import World


class HomeYard:
    """Our own queue, or the proxy before it: the jobs run here."""

    def __init__(self, world: World, *, proxy: bool) -> None:
        self.world = world
        self.pilot = CommandPilot(world.domain)
        self._proxy = proxy

    @property
    def meta(self) -> MetaScheduler:
        return self.world.runtime.proxy if self._proxy else self.world.runtime.meta

    @property
    def files(self) -> FileStore:
        return self.world.server.file_store

    @property
    def pilot_files(self) -> FileStore:
        return self.files

    async def settled(self) -> None:
        await self.world.quiet()

    async def crash(self) -> None:
        await self.world.restart()


class PeerYard:
    """Another domain: the jobs run there."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.pilot = CommandPilot(domains.away.domain, "p-away")

    @property
    def meta(self) -> MetaScheduler:
        return self.domains.home.runtime.domains.peer(AWAY)

    @property
    def files(self) -> FileStore:
        return self.domains.home.server.file_store

    @property
    def pilot_files(self) -> FileStore:
        return self.domains.away.server.file_store

    async def settled(self) -> None:
        await self.domains.quiet()

    async def crash(self) -> None:
        await self.domains.home.restart()


class TestQueue(MetaSchedulerContract):
    @pytest.fixture
    async def yard(self, tmp_path: Path) -> AsyncIterator[Yard]:
        async with Domains(tmp_path, recovery=False) as domains:
            yield HomeYard(domains.home, proxy=False)


class TestProxy(MetaSchedulerContract):
    @pytest.fixture
    async def yard(self, tmp_path: Path) -> AsyncIterator[Yard]:
        async with Domains(tmp_path, recovery=False) as domains:
            yield HomeYard(domains.home, proxy=True)


class TestPeer(MetaSchedulerContract):
    @pytest.fixture
    async def yard(self, tmp_path: Path) -> AsyncIterator[Yard]:
        async with Domains(tmp_path, recovery=False) as domains:
            yield PeerYard(domains)
