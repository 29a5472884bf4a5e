"""Commands that are given while a server starts, or between the end of one and the start of the next."""

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mendflow.cli import announced_wait, connection
from mendflow.cli.connection import connect, find_started
from mendflow.cli.embedded_server import enter_when_free, open_folder
from mendflow.cli.local_client import LocalClient
from mendflow.cli.options import ServerTarget
from mendflow.cli.starting_server import data_folder, mark_starting
from mendflow.client.server_file import find_server, lock_holder
from mendflow.core.model.errors import StoreUnavailable
from mendflow.wiring import ServerOptions, running_server
from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S
from tests.patience import until as eventually

HELLO = "name: hello\njobs:\n  say: {run: echo hello}\n"


@pytest.mark.parametrize(
    ("words", "environment", "folder"),
    [
        ([], {}, ".mendflow"),
        ([], {"MENDFLOW_DATA_DIR": "other"}, "other"),
        (["--jobs", "2", "--data-dir", "here"], {"MENDFLOW_DATA_DIR": "other"}, "here"),
        (["--data-dir=here", "--port", "0"], {}, "here"),
        (["--data-dir"], {}, ".mendflow"),
    ],
)
def test_the_folder_is_the_one_that_the_server_will_use(
    words: list[str], environment: dict[str, str], folder: str
) -> None:
    assert data_folder(words, environment) == folder


def until(holds: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_at, "it did not come about"
        time.sleep(0.01)


def test_a_folder_that_is_marked_has_a_holder_and_no_server_yet(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            mark_starting(["--data-dir", str(tmp_path)], {})
            (tmp_path / "marked").touch()
            signal.pause()
        finally:
            os._exit(0)
    try:
        until((tmp_path / "marked").exists)
        assert (lock_holder(tmp_path) or "").startswith(f"process {child} on ") and find_server(tmp_path) is None
        mark_starting(["--data-dir", str(tmp_path)], {})
        assert (lock_holder(tmp_path) or "").startswith(f"process {child} on "), "the first one stays"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert lock_holder(tmp_path) is None, "however it ends"


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    mark_starting(["--data-dir", str(tmp_path / "none")], {})
    assert not (tmp_path / "none").exists()


def test_a_command_does_not_wait_for_a_lock_of_its_own(tmp_path: Path) -> None:
    lock = os.open(tmp_path / "store.db.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, f"process {os.getpid()} on here".encode())
        assert find_started(tmp_path) is None
    finally:
        os.close(lock)


def test_who_waits_for_a_server_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(announced_wait, "SAY_AFTER_S", 0.0)
    monkeypatch.setattr(connection, "BETWEEN_S", 0.5)
    lock = os.open(tmp_path / "store.db.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, b"process 1 on elsewhere")
        assert find_started(tmp_path) is None
    finally:
        os.close(lock)
    assert " ".join(capsys.readouterr().err.split()).count("a server is starting or ending there; waiting for it") == 1


def test_a_case_is_watched_by_whoever_comes_while_its_server_starts(shell: Shell) -> None:  # UI-1
    shell.write("hello.yaml", HELLO)
    shell.ok("run", "hello.yaml", "--quiet")
    case = shell.json("start", "hello.yaml")["id"]
    folder = shell.folder / ".mendflow"
    assert "No server runs here now" in shell("cases").stderr
    shell.start("serve", "--port", "0", "--jobs", "1")
    shell.until(lambda: lock_holder(folder) is not None)
    watched = shell("watch", case, "--quiet")
    assert watched.returncode == 0 and f"{case} completed in" in watched.stdout, watched.stderr
    assert "No server runs" not in shell("cases").stderr


def test_who_watches_a_case_that_no_server_runs_is_told_what_to_do(shell: Shell) -> None:  # UI-1
    shell.write("hello.yaml", HELLO)
    shell.ok("run", "hello.yaml", "--quiet")
    case = shell.json("start", "hello.yaml")["id"]
    told = " ".join(shell("watch", case).stderr.split())
    assert f"no server runs on {shell.folder}/.mendflow" in told
    assert f"mendflow resume {case}" in told and "mendflow serve" in told


async def test_a_server_that_ends_before_it_is_asked_leaves_its_folder_to_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a case that was just over: the server was found and listened, and is gone when the request comes
    async with AsyncExitStack() as server:
        await server.enter_async_context(running_server(ServerOptions(data=tmp_path)))
        listens = connection._listens

        async def ends_then(url: str) -> bool:
            found = await listens(url)
            await server.aclose()
            return found

        monkeypatch.setattr(connection, "_listens", ends_then)
        async with connect(ServerTarget(data=str(tmp_path))) as client:
            assert isinstance(client, LocalClient)
            assert await client.cases() == []


async def test_a_server_that_ends_answers_a_command_that_has_found_it(tmp_path: Path) -> None:
    async with AsyncExitStack() as server:
        await server.enter_async_context(running_server(ServerOptions(data=tmp_path, mostly_pilots=True)))
        async with connect(ServerTarget(data=str(tmp_path))) as client:
            ending = asyncio.create_task(server.aclose())
            await eventually(lambda: find_server(tmp_path) is None)
            assert await client.cases() == []
            assert not ending.done()
        await ending


async def test_a_server_waits_for_a_command_that_has_its_folder_open(tmp_path: Path) -> None:
    async with AsyncExitStack() as command, AsyncExitStack() as server:
        await command.enter_async_context(open_folder(tmp_path))
        starting = asyncio.create_task(enter_when_free(server, ServerOptions(data=tmp_path)))
        await asyncio.sleep(0.3)
        assert not starting.done()
        await command.aclose()
        assert (await starting).url


async def test_a_server_does_not_wait_for_another_one(tmp_path: Path) -> None:
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        await first.enter_async_context(running_server(ServerOptions(data=tmp_path)))
        with pytest.raises(StoreUnavailable, match="is in use by process"):
            await enter_when_free(second, ServerOptions(data=tmp_path))
