"""What a store that outlives its process does besides: what returned is there, however the writer ended."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.stores.contract import Append, Delete, Put, StoredDocument, WriteConflict, WriteDone
from tests.contract.backends import Durable
from tests.contract.documents import done, put


async def test_what_returned_is_there_after_closing_and_opening_again(durable: Durable, tmp_path: Path) -> None:  # JS-2
    store = durable.make(tmp_path)
    await store.open()
    version = await put(store, "a", b"2", await put(store, "a", b"1"))
    await done(store, Append("s", [b"x", b"y"], 0))
    await store.close()
    again = durable.make(tmp_path)
    await again.open()
    assert await again.get("job", "a") == StoredDocument("job", "a", version, b"2")
    assert await again.read("s") == [b"x", b"y"]
    assert await again.write([Append("s", [b"z"], 2)]) == [WriteDone(3)]
    assert await put(again, "a", b"3", version) > version
    await again.close()


async def test_an_old_version_stays_old_after_closing_and_opening_again(durable: Durable, tmp_path: Path) -> None:
    seen: set[int] = set()
    for _ in range(3):
        store = durable.make(tmp_path)
        await store.open()
        version = await put(store, "a")
        assert version not in seen
        for old in seen:
            assert await store.write([Put("job", "a", b'"old"', old)]) == [WriteConflict("job", "a", old, version)]
        seen.add(version)
        await done(store, Delete("job", "a", version))
        await store.close()


@pytest.mark.law
async def test_what_returned_is_there_after_kill_9(durable: Durable, tmp_path: Path) -> None:  # JS-2
    """A process writes and says of each write when it has returned; it is killed in the middle, three times."""
    for life in range(3):
        acknowledged = _write_until_killed(WRITES_AND_TELLS.format(store=durable.source(tmp_path), life=life), 300)
        store = durable.make(tmp_path)
        await store.open()
        for writer, number in acknowledged:
            document = await store.get("job", f"{life}/{writer}")
            assert document is not None
            written = json.loads(document.body)
            assert written >= number
            assert await store.length(f"{life}/{writer}") in (written + 1, written + 2)
        await store.close()


WRITES_AND_TELLS = """
import asyncio
{store}
from mendflow.stores.contract import Append, Put

async def write(writer):
    version = 0
    for number in range(1_000_000):
        await store.write([Append(f"{life}/{{writer}}", [b"x" * 100], number)])
        (made,) = await store.write([Put("job", f"{life}/{{writer}}", str(number).encode(), version)])
        version = made.version
        print(writer, number, flush=True)

async def main():
    await store.open()
    await asyncio.gather(*(write(writer) for writer in range(8)))

asyncio.run(main())
"""


def _write_until_killed(script: str, lines: int) -> list[tuple[int, int]]:
    """What the process had said was written when it was killed."""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [line for line, _ in zip(process.stdout, range(lines), strict=False)]
        process.kill()
        said += process.stdout.readlines()
    told = [line.split() for line in said if line.endswith("\n")]
    assert len(told) >= lines
    return [(int(writer), int(number)) for writer, number in told]
