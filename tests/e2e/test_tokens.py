"""Tokens at several servers on one store, each a process of its own."""  # SE-1

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.client.sync_client import SyncClient
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.errors import RequestError, Unauthorized
from tests.patience import PATIENCE_S
from tests.servers.postgresql import postgresql_server

BOSS = "the-token-of-the-boss-0123456789"


@pytest.fixture
def urls(tmp_path: Path) -> Iterator[list[str]]:
    """Two servers on one PostgreSQL."""
    started: list[subprocess.Popen[bytes]] = []
    with postgresql_server() as database:
        for name in ("one", "two"):
            words = ["serve", "--port", "0", "--data-dir", str(tmp_path / name), "--store", database.url]
            environment = {**os.environ, "MENDFLOW_TOKEN": BOSS}
            started.append(subprocess.Popen([sys.executable, "-m", "mendflow", *words], env=environment))
        try:
            yield [_address(tmp_path / name / "server.json") for name in ("one", "two")]
        finally:
            for each in started:
                each.terminate()
            for each in started:
                each.wait(PATIENCE_S)


def _address(file: Path) -> str:
    until = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.1)
    return str(json.loads(file.read_text())["url"])


def _is_let_in(url: str, token: str) -> bool:
    with SyncClient(url, token) as client:
        try:
            client.cases()
        except Unauthorized:
            return False
        except RequestError as error:
            raise AssertionError(error) from error
    return True


@pytest.mark.full
def test_a_token_that_is_revoked_at_one_server_is_refused_by_all(urls: list[str]) -> None:
    one, two = urls
    with SyncClient(one, BOSS) as boss:
        made = boss.create_token(TokenRequest(name="ann"))
        assert _is_let_in(one, made.token) and _is_let_in(two, made.token), "at once, at both"
        boss.revoke_token("ann")
    assert not _is_let_in(one, made.token), "at once, where it was revoked"
    until = time.monotonic() + PATIENCE_S
    while _is_let_in(two, made.token):
        assert time.monotonic() < until, "the other server never heard of it"
        time.sleep(0.1)
