"""The client for scripts does what the other does, and leaves no thread behind."""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mendflow.client import Client, SyncClient
from mendflow.client import client as client_module
from mendflow.core.model.errors import NotFound
from mendflow.server.runner import HttpServer
from tests.server.conversation import SEVERAL, do_jobs, loop_flow
from tools import sync_client


def _public(kind: type) -> dict[str, inspect.Signature]:
    members = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(one) for name, one in members if not name.startswith("_")}


def test_it_has_the_methods_of_the_other_with_the_same_parameters() -> None:
    plain, wanted = _public(SyncClient), _public(Client)
    del wanted["sync"]  # a pilot's, and pilots are no scripts
    assert {name: list(one.parameters.values()) for name, one in plain.items()} == {
        name: list(one.parameters.values()) for name, one in wanted.items()
    }


def test_it_is_what_the_tool_makes_of_the_other() -> None:
    made = sync_client.TARGET.read_text()
    assert made == sync_client.text(), "run python tools/sync_client.py"


async def test_a_script_runs_a_flow(served: HttpServer, client: Client, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("content")

    def script() -> list[str]:
        with SyncClient(served.url, user="ann") as plain:
            plain.deploy(loop_flow())
            case = plain.start("many", {"n": 1})
            assert plain.wait(case.id, timeout_s=30).status == "completed"
            with pytest.raises(NotFound):
                plain.case("none")
            plain.download(plain.upload(source), tmp_path / "out")
            assert plain.health().status == "ok"
            return [one.state for one in plain.events(case.id)]

    done, _ = await asyncio.gather(asyncio.to_thread(script), do_jobs(client, SEVERAL))
    assert done[-1] == "completed"
    assert (tmp_path / "out").read_text() == "content"
    assert "mendflow-client" not in [thread.name for thread in threading.enumerate()]


def test_who_leaves_a_loop_over_events_has_closed_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    async def follow(*_: object) -> AsyncGenerator[str, None]:
        try:
            yield "first"
            yield "second"
        finally:
            await asyncio.sleep(0.2)
            closed.append(True)

    monkeypatch.setattr(client_module, "follow", follow)
    with SyncClient("http://127.0.0.1:9") as plain:
        for _ in plain.events("c"):
            break
        assert closed


def test_closing_twice_is_harmless() -> None:
    plain = SyncClient("http://127.0.0.1:9")
    plain.close()
    plain.close()
