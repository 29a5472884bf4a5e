"""The client of a server in the same process can be asked whatever a client over HTTP can be asked."""

import inspect
from pathlib import Path

import pytest

from mendflow import wiring
from mendflow.cli.local_client import LocalClient
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.views import CaseQuery
from mendflow.services.api.domain import Domain

HERE_AND_THERE = {"wait", "post", "close"}
"""Calls that are made of others, or go over HTTP by their nature."""


def calls() -> list[str]:
    return [name for name, _ in inspect.getmembers(Client, inspect.iscoroutinefunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", sorted(set(calls()) - HERE_AND_THERE))
def test_every_call_is_answered_by_the_domain(name: str) -> None:
    assert getattr(LocalClient, name) is not getattr(Client, name)


@pytest.mark.parametrize(
    "name", [name for name in calls() if getattr(getattr(LocalClient, name), "__qualname__", "").startswith("_direct")]
)
def test_a_call_that_is_passed_on_has_the_parameters_of_the_domains_own(name: str) -> None:
    asked = set(inspect.signature(getattr(Client, name)).parameters)
    taken = inspect.signature(getattr(Domain, name)).parameters
    wanted = {key for key, value in taken.items() if value.default is inspect.Parameter.empty}
    assert asked <= set(taken)
    assert wanted - {"who"} <= asked


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
