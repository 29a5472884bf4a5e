"""A server for whoever runs it: what holds there only while nobody else has a token in its store."""  # SE-1

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mendflow.address_guard import check_url
from mendflow.cli.serve import keep_for_one, read_tokens_again
from mendflow.cli.slots_for_one import end_slots_for_several, job_owners_anywhere
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.errors import Forbidden, InvalidRequest
from mendflow.core.model.principals import Principal
from mendflow.server.access import AccessControl, AccessToken, new_token, single_token, token_hash
from mendflow.server.access_setup import tell_job_owners
from mendflow.server.webhook_posts import HttpPoster
from mendflow.wiring import RunningServer, ServerOptions, running_server
from tests.server.town import town, until

PRIVATE = "http://10.0.0.1/hook"


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with running_server(ServerOptions(data=tmp_path / "data", files_roots=None)) as server:
        yield server


async def create(server: RunningServer, name: str, *roles: str) -> None:
    await server.domain.create_token(TokenRequest(name=name, roles=list(roles)), who="ada")


def calls_private(server: RunningServer) -> bool:
    poster = server.server.poster
    assert isinstance(poster, HttpPoster)
    try:
        check_url(PRIVATE, guard=poster.guard)
    except InvalidRequest:
        return False
    return True


@pytest.mark.parametrize("role", ["admin", "user", "engine"])
async def test_a_token_for_another_is_refused_where_jobs_would_run_as_the_owner(own: RunningServer, role: str) -> None:
    keep_for_one(own)
    with pytest.raises(Forbidden, match=r"--jobs-as ACCOUNT.*--sandbox bubblewrap.*--sandbox containers"):
        await create(own, "bob", role)
    await create(own, "prometheus", "metrics")
    await create(own, "eye", "reader")
    await create(own, "site", "pilot")
    assert [each.name for each in await own.domain.tokens()] == ["eye", "prometheus", "site"]


async def test_a_role_in_a_project_lets_jobs_run_unless_it_only_looks(own: RunningServer) -> None:
    keep_for_one(own)
    with pytest.raises(Forbidden, match="--jobs-as"):
        await own.domain.create_token(TokenRequest(name="bob", roles=["x"], projects={"lab": "operator"}), who="ada")
    await own.domain.create_token(TokenRequest(name="bob", projects={"lab": "viewer"}), who="ada")


async def test_a_server_whose_store_has_tokens_of_others_does_not_start_jobs_as_its_owner(own: RunningServer) -> None:
    await create(own, "bob", "user")
    with pytest.raises(Forbidden, match="--jobs-as"):
        keep_for_one(own)
    await own.domain.revoke_token("bob", who="ada")
    keep_for_one(own)


async def test_any_folder_and_private_addresses_are_for_the_owner_alone(own: RunningServer) -> None:
    await create(own, "prometheus", "metrics")
    assert own.server.files_roots() is None and calls_private(own)
    await create(own, "bob", "user")
    assert own.server.files_roots() == () and not calls_private(own)
    await own.domain.revoke_token("bob", who="ada")
    assert own.server.files_roots() is None and calls_private(own)


async def test_what_a_server_finds_in_its_store_holds_from_the_first_moment(tmp_path: Path) -> None:
    options = ServerOptions(data=tmp_path / "data", files_roots=None, listen=False)
    async with running_server(options) as server:
        await create(server, "bob", "user")
    async with running_server(options) as server:
        assert server.server.files_roots() == () and not calls_private(server)


async def test_tokens_of_the_store_open_nothing_where_one_command_runs_a_case(tmp_path: Path) -> None:
    options = ServerOptions(data=tmp_path / "data", files_roots=None, mostly_pilots=True)
    async with running_server(options) as server:
        made = await server.domain.create_token(TokenRequest(name="bob"), who="ada")
        assert server.access is not None
        assert server.access.find([(b"authorization", f"Bearer {made.token}".encode())]) is None
        assert server.server.files_roots() is None and calls_private(server)


async def test_a_token_file_that_is_read_again_adds_nobody_where_jobs_run_as_the_owner(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "tokens"
    lines = [new_token(name, ["user"])[1] for name in ("ada", "bob")]
    file.write_text("\n".join(lines))
    file.chmod(0o600)
    tokens = tuple(single_token("the-token-of-ada-0123456789"))
    async with running_server(ServerOptions(data=tmp_path / "data", tokens=tokens)) as server:
        assert server.access is not None
        with caplog.at_level(logging.ERROR, "mendflow.server"):
            read_tokens_again(server, str(file), for_one=True)
        assert "the tokens stay as they were: more than one" in caplog.text
        assert server.access.tokens == list(tokens)
        read_tokens_again(server, str(file), for_one=False)
        assert [each.name for each in server.access.tokens] == ["ada", "bob"]


def test_whoever_needs_no_token_counts_as_one() -> None:
    bob = Principal("bob", frozenset({"user"}))
    assert AccessControl().serves_several(bob)
    assert not AccessControl().serves_several()
    assert not AccessControl(single_token("t")).serves_several()
    assert AccessControl(single_token("t")).serves_several(bob)


class Slots:
    """What is left of a pilot beside a server: whether it was stopped."""

    stopped = False

    async def stop(self) -> None:
        self.stopped = True


async def test_slots_end_when_another_server_on_the_store_lets_somebody_else_run_jobs(tmp_path: Path) -> None:  # SE-2
    ada, bob = (AccessToken(name, frozenset({"user"}), token_hash(name)) for name in ("ada", "bob"))
    async with town(tmp_path, "one", "two", tokens=[ada]) as (one, two):
        telling = [asyncio.create_task(tell_job_owners(each.server, each.access)) for each in (one, two)]
        await until(lambda: all(each.job_owners for each in one.member.live_servers()))
        running: Any = SimpleNamespace(server=one.server, access=one.access)
        assert job_owners_anywhere(running) == {"ada"}
        slots, keeping = Slots(), asyncio.create_task(asyncio.sleep(600))
        ending = asyncio.create_task(end_slots_for_several(running, slots, keeping, "x"))  # type: ignore[arg-type]  # what it needs of them
        await asyncio.sleep(0)
        assert not slots.stopped
        two.access.replace_tokens([ada, bob])
        async with asyncio.timeout(60):
            await ending
        assert slots.stopped and (keeping.cancelled() or keeping.cancelling())
        for each in telling:
            each.cancel()
