"""A host gives no domain more room than it has the right to, however much it sends at a time, whatever it declares."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.domains import DomainRights
from mendflow.core.model.errors import Forbidden, TooLarge
from mendflow.core.model.values import FileRef
from mendflow.services.api.domain_gate import DomainGate
from mendflow.services.domains.connections import Connection
from mendflow.services.domains.hosted_work import HostedWorks
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.services.domains.by_hand import HandOrigin, sent_job
from tests.services.domains.kit import Domains


def made(content: bytes, declared: int | None = None) -> FileRef:
    size = len(content) if declared is None else declared
    return FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=size, name="f")


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def connection(rights: DomainRights) -> Connection:
    return Connection(name="home", urls=(), token_sha256="", sealed_token="", mark="", rights=rights)


async def put(domains: Domains, rights: DomainRights, content: bytes) -> None:
    gate = DomainGate(domains.away.server)
    await gate.take_file(connection(rights), hashlib.sha256(content).hexdigest(), once(content))


def hosted(domains: Domains) -> HostedWorks:
    return domains.away.runtime.domains.hosted


async def test_no_more_work_than_allowed_is_taken_of_what_comes_at_a_time(tmp_path: Path) -> None:
    async with Domains(tmp_path, stores=(MemoryStore(), SqliteStore(tmp_path / "away.db"))) as domains:
        rights = DomainRights(work_max=3)
        one, other = HandOrigin(rights), HandOrigin(rights)
        await asyncio.gather(
            one.say(hosted(domains), *(sent_job(f"a-{number}") for number in range(5))),
            other.say(hosted(domains), *(sent_job(f"b-{number}") for number in range(5))),
        )
        assert len(domains.away.runtime.manager.live) == 3
        assert hosted(domains).held("home") == 3


async def test_files_that_were_asked_for_count_before_they_have_come(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        rights = DomainRights(bytes_max=100)
        works = [sent_job(f"k-{each}", files=[made(bytes([each]) * 60)]) for each in range(3)]
        said = await HandOrigin(rights).say(hosted(domains), *works)
        assert sorted(each.state for each in said.values()) == ["missing-files", "refused", "refused"]
        assert "more than the 100 bytes" in said["k-1"].reason


async def test_a_file_is_taken_up_to_the_size_that_its_origin_has_declared(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        rights = DomainRights(bytes_max=100)
        content = b"x" * 90
        await HandOrigin(rights).say(hosted(domains), sent_job(files=[made(content, declared=1)]))
        with pytest.raises(TooLarge, match="larger than the 1 bytes that were announced"):
            await put(domains, rights, content)


async def test_the_sizes_of_stored_files_count_whatever_is_declared(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        rights, content = DomainRights(bytes_max=100), b"y" * 150
        kept = await domains.away.server.file_store.keep("f", once(content))
        hosted(domains).file_delivered("home", kept.sha256)
        said = await HandOrigin(rights).say(hosted(domains), sent_job(files=[made(content, declared=-50)]))
        assert said["k-1"].state == "refused"


async def test_files_that_have_come_for_work_that_was_given_up_still_count(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        rights, first, second = DomainRights(bytes_max=100), b"1" * 60, b"2" * 60
        origin = HandOrigin(rights)
        await origin.say(hosted(domains), sent_job("k-1", files=[made(first)]))
        await put(domains, rights, first)
        origin.claims.clear()
        said = await origin.say(hosted(domains), sent_job("k-2", files=[made(second)]))
        assert said["k-2"].state == "refused"


async def test_a_file_is_wanted_no_longer_when_its_work_is_given_up(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        rights, content = DomainRights(), b"1" * 60
        origin = HandOrigin(rights)
        await origin.say(hosted(domains), sent_job("k-1", files=[made(content)]))
        origin.claims.clear()
        await origin.say(hosted(domains))
        with pytest.raises(Forbidden):
            await put(domains, rights, content)


async def test_work_whose_files_have_come_is_taken_within_its_room(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        rights, content = DomainRights(bytes_max=100), b"1" * 60
        origin, work = HandOrigin(rights), sent_job("k-1", files=[made(content)])
        await origin.say(hosted(domains), work)
        await put(domains, rights, content)
        assert (await origin.say(hosted(domains), work))["k-1"].state == "running"
