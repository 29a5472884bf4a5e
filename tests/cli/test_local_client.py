"""The client of a server in the same process can be asked whatever a client over HTTP can be asked."""

import inspect
from pathlib import Path

import pytest

from mendflow import wiring
from mendflow.cli.local_client import LocalClient
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.views import CaseQuery

BY_HTTP_ALONE = {"close", "_ask", "post", "endpoint", "url"}
"""What belongs to HTTP, or is answered for every operation at once."""


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, call in inspect.getmembers(Client, inspect.isfunction)
        if "_transport" in call.__code__.co_names and name not in {*BY_HTTP_ALONE, "__init__"}
    ],
)
def test_a_call_that_is_written_for_http_is_written_for_the_domain_too(name: str) -> None:
    assert name in vars(LocalClient)


async def test_both_clients_are_told_the_same(tmp_path: Path) -> None:
    async with (
        wiring.running_server(wiring.ServerOptions(data=tmp_path)) as server,
        Client(server.url) as over_http,
    ):
        direct = LocalClient(server.domain)
        rules, found = await direct.rule_sets(), await direct.find_cases(CaseQuery())
        assert rules == await over_http.rule_sets()
        assert found == await over_http.find_cases(CaseQuery())
        assert await direct.count_jobs() == await over_http.count_jobs()
        assert await direct.patterns() == await over_http.patterns()
        for client in (direct, over_http):
            with pytest.raises(NotFound):
                await client.case("nobody")
            with pytest.raises(NotFound):
                await client.job("no-id")
            with pytest.raises(InvalidRequest, match="limit"):
                await client.cases(limit=0)
            with pytest.raises(InvalidRequest, match="status: Invalid enum value 'asleep'"):
                await client.cases(status="asleep")
            with pytest.raises(InvalidRequest, match="name"):
                await client.datum("../up")


async def test_a_file_is_stored_and_fetched_without_http(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a few words")
    options = wiring.ServerOptions(data=tmp_path / "data", listen=False, announce=False)
    async with wiring.running_server(options) as server:
        client = LocalClient(server.domain)
        ref = await client.upload(tmp_path / "in.txt")
        assert await client.upload(tmp_path / "in.txt") == ref
        fetched = await client.download(ref, tmp_path / "out.txt")
        assert fetched.read_text() == "a few words"
        with pytest.raises(NotFound):
            await client.download("0" * 64, tmp_path / "none.txt")
    assert not (tmp_path / "data" / "server.json").exists()
