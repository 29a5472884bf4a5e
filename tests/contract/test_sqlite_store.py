"""What can go wrong around a SQLite file: each gets a clear sentence, and loses nothing."""

import asyncio
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.stores.contract import Append, Delete, FieldCondition, Put, WriteConflict, WriteDone
from mendflow.stores.sqlite import writer as sqlite_writer
from mendflow.stores.sqlite.store import READING_NICENESS, SqliteStore
from tests.contract.documents import done, outcomes, put

BLOB = json.dumps("x" * 4000).encode()


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


def run(script: str) -> str:
    """What a process says that runs the script to its end."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


# One server a file


async def test_a_second_server_on_the_file_is_told_who_has_it(tmp_path: Path) -> None:
    first = await opened(tmp_path / "store.db")
    with pytest.raises(StoreUnavailable) as refused:
        await opened(tmp_path / "store.db")
    assert f"store.db is in use by process {os.getpid()} on {socket.gethostname()}" in refused.value.message
    assert "stop that server" in refused.value.message
    await first.close()
    second = await opened(tmp_path / "store.db")
    await second.close()


async def test_a_server_in_another_process_keeps_us_out_until_it_dies(tmp_path: Path) -> None:
    script = f"""
import asyncio
from mendflow.stores.sqlite.store import SqliteStore
async def main():
    await SqliteStore({str(tmp_path / "store.db")!r}).open()
    print("open", flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None and await process.stdout.readline() == b"open\n"
    with pytest.raises(StoreUnavailable, match=f"in use by process {process.pid}"):
        await opened(tmp_path / "store.db")
    process.kill()
    await process.wait()
    store = await opened(tmp_path / "store.db")
    await store.close()


# The disk


async def test_a_full_disk_refuses_the_group_whole_and_writing_goes_on_when_there_is_space(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store.db")
    await store.write([Put("job", "before", b"1", 0), Append("s", [b"x"], 0)])
    main = store._ready().main
    (pages,) = main.execute("PRAGMA page_count").fetchone()
    main.execute(f"PRAGMA max_page_count = {pages + 5}")
    results = await asyncio.gather(
        store.write([Put("job", "small", b"1", 0)]),
        store.write([Put("job", f"big{n}", BLOB, 0) for n in range(100)]),
        store.write([Append("s", [b"y"], 1)]),
        return_exceptions=True,
    )
    for result in results:
        assert isinstance(result, StoreUnavailable)
        assert "store.db: there is no space left" in result.message
    assert await store.get("job", "small") is None and await store.get("job", "big0") is None
    assert await store.read("s") == [b"x"]
    main.execute("PRAGMA max_page_count = 1000000")
    assert outcomes(await store.write([Put("job", "big0", BLOB, 0), Append("s", [b"y"], 1)])) == [
        "WriteDone",
        "WriteDone",
    ]
    await store.close()


async def test_a_disk_that_stops_taking_data_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the kernel itself refuses the writes."""
    script = f"""
import asyncio, json, resource, signal
from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.stores.contract import Put
from mendflow.stores.sqlite.store import SqliteStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    store = SqliteStore({str(tmp_path / "store.db")!r})
    await store.open()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    kept, refused = [], []
    for number in range(200):
        if number == 150:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        try:
            await store.write([Put("job", str(number), json.dumps("x" * 4000).encode(), 0)])
            kept.append(number)
        except StoreUnavailable as error:
            refused.append([number, error.message])
    print(json.dumps([kept, refused]))
    await store.close()
asyncio.run(main())
"""
    kept, refused = json.loads(run(script))
    assert refused and max(number for number, _ in refused) == 149
    assert set(range(150, 200)) <= set(kept)
    assert all("store.db: " in message and "space" in message for _, message in refused)
    store = await opened(tmp_path / "store.db")
    found = [int(document.id) async for document in store.scan("job")]
    assert sorted(found) == kept
    await store.close()


async def test_a_file_that_was_removed_or_replaced_takes_nothing_more(tmp_path: Path) -> None:  # JS-1
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.write([Put("case", "a", b"{}", 0)])
    (tmp_path / "store.db-wal").rename(tmp_path / "aside")
    await asyncio.sleep(2 * sqlite_writer.LOOKED_FOR_S)
    with pytest.raises(StoreUnavailable, match="removed or replaced while it was in use"):
        await store.write([Put("case", "b", b"{}", 0)])
    (tmp_path / "aside").rename(tmp_path / "store.db-wal")
    await store.write([Put("case", "c", b"{}", 0)])
    await store.close()
    other = SqliteStore(path)
    await other.open()
    assert [each.id async for each in other.scan("case")] == ["a", "c"]
    await other.close()


async def test_a_locked_file_is_waited_for(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store.db")
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.ensure_future(store.write([Put("job", "a", b"1", 0)]))
    await asyncio.wait([write], timeout=0.1)
    assert not write.done()
    other.execute("ROLLBACK")
    assert outcomes(await write) == ["WriteDone"]
    other.close()
    await store.close()


async def test_a_file_that_stays_locked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writer, "LOCKED_SECONDS_MAX", 0.05)
    store = await opened(tmp_path / "store.db")
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"store\.db: another program holds it locked: close that program"):
        await store.write([Put("job", "a", b"1", 0)])
    other.execute("ROLLBACK")
    assert outcomes(await store.write([Put("job", "a", b"1", 0)])) == ["WriteDone"]
    other.close()
    await store.close()


# The file


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"nowhere/store\.db: .*check that its folder exists"):
        await opened(tmp_path / "nowhere" / "store.db")


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_text("dear diary, " * 500)
    with pytest.raises(StoreUnavailable, match="it is not a mendflow store"):
        await opened(path)
    assert path.read_text() == "dear diary, " * 500


async def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreUnavailable, match=r"store\.db: it cannot be opened"):
        await opened(tmp_path / "store.db")


async def test_a_damaged_file_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await opened(path)
    await store.write([Put("job", str(number), BLOB, 0) for number in range(200)])
    await store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with pytest.raises(StoreUnavailable, match="it is damaged"):
        store = await opened(path)
        try:
            await store.write([Put("job", "new", b"1", 0)])
        finally:
            await store.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may get to. pytest takes the rights to its own away from others whenever it is started."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


async def test_a_file_that_may_only_be_read_is_told_as_such(open_folder: Path) -> None:
    """Root may write everything; so a process that has put its privileges away tries it."""
    path = open_folder / "store.db"
    store = await opened(path)
    await store.close()
    script = f"""
import asyncio, os
from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.stores.sqlite.store import SqliteStore
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    asyncio.run(SqliteStore({str(path)!r}).open())
except StoreUnavailable as error:
    print(error.message)
"""
    path.chmod(0o444)
    path.with_name(path.name + ".lock").chmod(0o666)
    assert f"{path}: it may not be written" in run(script)


# The writer


async def test_a_commit_is_synced_and_survives_by_the_log(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store.db")
    main = store._ready().main
    assert main.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert main.execute("PRAGMA synchronous").fetchone() == (2,)
    await store.close()


async def test_calls_made_together_share_one_commit(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store.db")
    seen: list[str] = []
    store._ready().main.set_trace_callback(seen.append)
    await asyncio.gather(*(store.write([Put("job", str(number), b"1", 0)]) for number in range(200)))
    assert seen.count("COMMIT") == 1
    await store.close()


async def test_what_a_failed_commit_would_have_written_is_not_remembered(tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    first = await put(store, "a")
    await done(store, Append("s", [b"x"], 0))
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("CREATE TRIGGER no BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no room'); END")
    with pytest.raises(RequestError):
        await store.write([Put("job", "a", b"2", first), Append("s", [b"y"], 1)])
    other.execute("DROP TRIGGER no")
    other.close()
    assert await store.write([Put("job", "a", b"3", first + 1)]) == [WriteConflict("job", "a", first + 1, first)]
    assert outcomes(await store.write([Put("job", "a", b"3", first), Append("s", [b"y"], 1)])) == [
        "WriteDone",
        "WriteDone",
    ]
    await store.close()


async def test_the_writer_looks_again_at_what_it_has_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writer, "REMEMBERED_MAX", 3)
    store = await opened(tmp_path / "s.db")
    versions = dict.fromkeys(range(8), 0)
    for length in range(4):
        for number in range(8):
            versions[number] = await put(store, f"{number}", b"{}", versions[number])
            assert await store.write([Append(f"s{number}", [b"x"], length)]) == [WriteDone(length + 1)]
    assert await store.write([Put("job", "1", b"{}", 2), Delete("job", "2", versions[2])]) == [
        WriteConflict("job", "1", 2, versions[1]),
        WriteDone(0),
    ]
    assert await store.write([Put("job", "2", b"{}", versions[2])]) == [WriteConflict("job", "2", versions[2], 0)]
    await put(store, "2", b"{}")
    await store.close()


async def test_versions_are_reserved_again_after_a_commit_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "VERSIONS_RESERVED", 2)
    seen: list[int] = []
    for life in range(3):
        store = await opened(tmp_path / "s.db")
        for number in range(5):
            seen.append(await put(store, f"{life}/{number}"))
            with pytest.raises(RequestError):
                await store.write([Put("job", f"{life}/{number}/bad", b"{", 0)])
        await store.close()
    assert seen == sorted(set(seen))


async def test_a_long_read_holds_up_no_short_one(tmp_path: Path) -> None:  # SE-4
    store = await opened(tmp_path / "store.db")
    await done(store, Put("case", "a", b'{"status": "running"}', 0))
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    long_one = asyncio.create_task(store._rows(endless, ()))
    await asyncio.sleep(0)
    assert [each.id for each in await store.search("case", [FieldCondition("status", "running")])] == ["a"]
    assert not long_one.done()
    while not long_one.done():  # its thread may not have begun yet
        for each in store._ready().readers.connections:
            each.interrupt()
        await asyncio.sleep(0.01)
    with pytest.raises(StoreUnavailable):
        await long_one
    await store.close()


async def test_a_large_document_is_not_written_on_the_event_loop(tmp_path: Path) -> None:  # SE-4
    store = await opened(tmp_path / "store.db")
    threads: list[str] = []
    store._ready().main.set_trace_callback(lambda _: threads.append(threading.current_thread().name))
    await done(store, Put("case", "small", b'{"status": "running"}', 0))
    assert threading.current_thread().name in threads
    threads.clear()
    await done(store, Put("case", "large", b'{"text": "%s"}' % (b"a" * 300_000), 0))
    assert set(threads) == {"sqlite-writer"}
    await store.close()


async def test_threads_that_read_give_way_to_all_others(tmp_path: Path) -> None:  # SE-3
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.search("job")
    readers = [each.native_id for each in threading.enumerate() if each.name.startswith("sqlite-reader")]
    ours = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert {os.getpriority(os.PRIO_PROCESS, id) for id in readers if id} == {min(19, ours + READING_NICENESS)}
    await store.close()
